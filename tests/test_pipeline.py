from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from pyspark.sql import SparkSession

from data_generator import landing, world
from helpers import KafkaBroker, lakehouse
from helpers.errors import RunningError, WorkshopError
from helpers.pipeline import __main__ as pipeline
from tests.conftest import python, wait_until

ORDERS = "bronze.order"
SCANS = "bronze.shipment_scan_event"


def new_rows() -> dict[str, int]:
    table = pipeline.run()
    return dict(zip(table["table"], table["new rows"], strict=True))


def rows(spark: SparkSession, table: str) -> list[str]:
    read = spark.read.format("delta").load(str(lakehouse.table(table)))
    return sorted(read.drop("_source", "_enqueued_at").toJSON().collect())


def as_json(records: list[world.Record]) -> list[str]:
    return sorted(json.dumps(record, separators=(",", ":")) for record in records)


@pytest.fixture
def topic(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own on the shared broker."""
    name = request.node.name
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    kafka = pipeline.sources.kafka
    monkeypatch.setattr(pipeline.sources, "kafka", lambda spark, _, servers: kafka(spark, name, servers))
    return str(name)


def test_files_and_topic_reach_their_tables_once(
    spark: SparkSession, broker: KafkaBroker, topic: str, lakehouse_folder: Path
) -> None:
    orders = list(world.orders(7, 1, 3))
    scans = world.scan_events(7, 1)
    landing.land(lakehouse_folder, "order", "a", orders[:2])
    landing.send(broker.bootstrap_servers, topic, [("1", scans)])

    assert new_rows() == {ORDERS: 2, SCANS: 7}
    assert rows(spark, ORDERS) == as_json(orders[:2])
    assert rows(spark, SCANS) == as_json(scans)

    assert new_rows() == {ORDERS: 0, SCANS: 0}

    landing.land(lakehouse_folder, "order", "b", orders[2:])
    assert new_rows() == {ORDERS: 1, SCANS: 0}
    assert rows(spark, ORDERS) == as_json(orders)


def test_without_a_broker_scan_events_come_from_files(spark: SparkSession, lakehouse_folder: Path) -> None:
    landing.land(lakehouse_folder, "shipment_scan_event", "a", world.scan_events(7, 1))
    assert new_rows() == {ORDERS: 0, SCANS: 7}


@pytest.mark.usefixtures("spark")
def test_every_row_says_where_it_came_from(
    spark: SparkSession, broker: KafkaBroker, topic: str, lakehouse_folder: Path
) -> None:
    landing.land(lakehouse_folder, "order", "a", list(world.orders(7, 1, 1)))
    landing.send(broker.bootstrap_servers, topic, [("1", world.scan_events(7, 1))])
    new_rows()
    came = {
        table: {row._source for row in spark.read.format("delta").load(str(lakehouse.table(table))).collect()}
        for table in (ORDERS, SCANS)
    }
    assert [source.rpartition("/")[2] for source in came[ORDERS]] == ["order_a.json"]
    assert came[SCANS] == {f"{topic}/0/0"}


def test_a_document_that_is_no_envelope_stops_its_stream_and_loses_nothing(
    spark: SparkSession, lakehouse_folder: Path
) -> None:
    landing.land(lakehouse_folder, "order", "good", list(world.orders(7, 1, 1)))
    broken = lakehouse_folder / "Files" / "landing" / "order" / "order_broken.json"
    broken.write_text('{"_meta": {}, "data": [{"OrderId": ')
    with pytest.raises(WorkshopError, match=r"bronze\.order stopped: .*Unexpected end-of-input"):
        pipeline.run()
    broken.write_text(json.dumps(landing.envelope("order", list(world.orders(7, 2, 1)))))
    assert new_rows()[ORDERS] == 2


def test_two_runs_at_once_are_refused() -> None:
    with FileLock(lakehouse.files("locks") / "run.lock"), pytest.raises(RunningError, match="another run works in"):
        pipeline.run()


@pytest.mark.spark
def test_any_folder_name_works_in_any_locale(tmp_path: Path) -> None:
    folder = tmp_path / "Büro №1, mit Leerzeichen"
    for module in (["data_generator", "--orders", "2"], ["helpers.pipeline", "run"]):
        done = python("-m", *module, LAKEHOUSE=str(folder), LC_ALL="C", LANG="C", PYTHONUTF8="1")
        assert done.returncode == 0, done.stderr
    assert f"{ORDERS} files        1         2         2" in done.stdout


@pytest.mark.spark
def test_a_run_killed_at_any_moment_is_made_good_by_the_next(spark: SparkSession, lakehouse_folder: Path) -> None:
    orders = list(world.orders(7, 1, 30))
    for number, order in enumerate(orders):
        landing.land(lakehouse_folder, "order", f"{number:03d}", [order])
    command = [sys.executable, "-m", "helpers.pipeline", "run"]
    commits = lakehouse_folder / "Files" / "checkpoints" / ORDERS / "offsets"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: (commits / "0").exists())  # the batch is planned, not yet committed
        process.kill()
    new_rows()
    assert rows(spark, ORDERS) == as_json(orders)
