"""The main job, headless.

python -m helpers.pipeline run        # everything new, then the table of what happened
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable

import pandas as pd
from delta import DeltaTable
from filelock import FileLock, Timeout
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from helpers import command, envelope, lakehouse, schemas, sinks, sources
from helpers.errors import LakehouseError, RunningError, WorkshopError, root_cause
from helpers.session import create_spark_session

log = logging.getLogger("helpers.pipeline")

Source = Callable[[SparkSession], DataFrame]


def flows() -> dict[str, tuple[str, str, Source, str]]:
    """Each stream's name, table, source and schema; scan events come from the broker when there is one."""
    broker = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    scans = "shipment_scan_event"
    from_topic = ("topic", lambda spark: sources.kafka(spark, scans, broker or ""))
    from_files = ("files", lambda spark: sources.landing(spark, scans))
    kind, scan_source = from_topic if broker else from_files
    return {
        "bronze.order": ("bronze.order", "files", lambda spark: sources.landing(spark, "order"), schemas.ORDER),
        f"bronze.{scans}.{kind}": (f"bronze.{scans}", kind, scan_source, schemas.SHIPMENT_SCAN_EVENT),
    }


def run() -> pd.DataFrame:
    """Bring every table up to date and tell what happened: one row a stream."""
    lakehouse.check_space()
    guard = FileLock(lakehouse.files("locks") / "run.lock", timeout=0)
    try:
        held = guard.acquire()
    except Timeout:
        raise RunningError(
            f"another run works in {lakehouse.root()}: wait for it, or set LAKEHOUSE to another folder"
        ) from None
    except OSError as error:
        raise LakehouseError(
            f"{guard.lock_file} cannot be written ({error.strerror}): set LAKEHOUSE to another folder"
        ) from error
    with held:
        log.info("starting Spark")
        return _run(create_spark_session("mcmillan"))


def _run(spark: SparkSession) -> pd.DataFrame:
    rows = []
    for checkpoint, (table, kind, source, schema) in flows().items():
        began = time.monotonic()
        log.info("%s: looking for what is new", checkpoint)
        records = source(spark).transform(envelope.open_envelope(schema))
        try:
            written = sinks.append(records, table, checkpoint=checkpoint)
        except StreamingQueryException as error:
            raise WorkshopError(
                f"the stream {checkpoint} stopped: {root_cause(error)}. What was committed stays; "
                "mend the cause and type the same again: nothing is read twice"
            ) from error
        log.info(
            "%s: %d new rows in %d batches, %.1f s", checkpoint, written.rows, written.batches, time.monotonic() - began
        )
        rows.append((table, kind, written.batches, written.rows, _count(spark, table)))
    return pd.DataFrame(rows, columns=["table", "from", "batches", "new rows", "all rows"])


def _count(spark: SparkSession, table: str) -> int:
    path = lakehouse.for_spark(lakehouse.table(table))
    return spark.read.format("delta").load(path).count() if DeltaTable.isDeltaTable(spark, path) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers.pipeline", description="The workshop's pipeline.")
    parser.add_argument("task", choices=["run"], help="run: process what is new, then stop")
    parser.parse_args()
    print(f"\n{run().to_string(index=False)}\n\nThe tables are in {lakehouse.root() / 'Tables'}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
