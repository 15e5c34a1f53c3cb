"""Bytes become records: the envelope is opened, whichever way it came."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark page uses

META = "schemaVersion STRING, producer STRING, recordType STRING, enqueuedTime STRING"


def open_envelope(schema: str) -> Callable[[DataFrame], DataFrame]:
    """One row a record of the envelope in `value`; a document that is no envelope stops the stream, nothing is lost.

    >>> landed.transform(open_envelope(schemas.ORDER)).columns[:2]
    ['OrderId', 'OrderNumber']
    """
    envelope = f"_meta STRUCT<{META}>, data ARRAY<STRUCT<{schema}>>"

    def opened(landed: DataFrame) -> DataFrame:
        document = F.from_json("value", envelope, {"mode": "FAILFAST"})
        return (
            landed.withColumn("document", document)
            .select("_source", F.col("document._meta.enqueuedTime").alias("_enqueued_at"), F.explode("document.data"))
            .select("col.*", "_source", F.to_timestamp("_enqueued_at").alias("_enqueued_at"))
        )

    return opened
