"""Where streams begin: files that land, and topics. Each row carries its bytes as text and where they came from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from helpers import lakehouse


def landing(spark: SparkSession, entity: str) -> DataFrame:
    """The entity's landed files, one row a file: `value`, `_source`.

    >>> landing(spark, "order").isStreaming
    True
    """
    files = spark.readStream.format("text").option("wholetext", True).load(_folder(entity))
    return files.select("value", F.col("_metadata.file_path").alias("_source"))


def kafka(spark: SparkSession, topic: str, bootstrap_servers: str) -> DataFrame:
    """The topic's messages from the first on, one row a message: `value`, `_source`.

    >>> kafka(spark, "shipment_scan_event", broker.bootstrap_servers).columns
    ['value', '_source']
    """
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", True)
        .load()
    )
    return messages.select(
        F.col("value").cast("string").alias("value"), F.concat_ws("/", "topic", "partition", "offset").alias("_source")
    )


def _folder(entity: str) -> str:
    return lakehouse.for_spark(lakehouse.files("landing", entity))
