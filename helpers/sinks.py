"""The only writer: everything that reaches a table goes through here, once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from helpers import lakehouse


@dataclass(frozen=True)
class Written:
    """What one run of a stream wrote."""

    table: str
    batches: int
    rows: int


def append(records: DataFrame, table: str, *, checkpoint: str) -> Written:
    """Append what is new to `zone.table` and return when it is done (availableNow).

    Delta's own sink writes the query's id and the batch into the commit, so a batch that is replayed after a crash
    changes nothing.

    >>> append(orders, "bronze.order", checkpoint="bronze.order")
    Written(table='bronze.order', batches=1, rows=20)
    """
    query = (
        records.observe("written", F.count(F.lit(1)).alias("rows"))
        .writeStream.format("delta")
        .queryName(checkpoint)
        .option("checkpointLocation", lakehouse.for_spark(lakehouse.files("checkpoints", checkpoint)))
        .trigger(availableNow=True)
        .start(lakehouse.for_spark(lakehouse.table(table)))
    )
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    return Written(table, len(batches), sum(int(batch.observedMetrics["written"]["rows"]) for batch in batches))
