from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from data_generator import landing, world
from helpers import KafkaBroker
from tests.conftest import python


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def test_the_same_seed_gives_the_same_bytes_in_any_zone(tmp_path: Path) -> None:
    for name, zone, hashes in [("a", "UTC", "1"), ("b", "Asia/Kathmandu", "2")]:
        done = python("-m", "data_generator", "--lakehouse", str(tmp_path / name), TZ=zone, PYTHONHASHSEED=hashes)
        assert done.stdout == "landed 20 orders, and 140 scan events as files\n"
    assert digest(tmp_path / "a" / "Files") == digest(tmp_path / "b" / "Files")
    python("-m", "data_generator", "--seed", "8", "--lakehouse", str(tmp_path / "c"))
    assert digest(tmp_path / "a" / "Files" / "landing") != digest(tmp_path / "c" / "Files" / "landing")


def test_sums_are_true_to_the_cent() -> None:
    for order in world.orders(7, 1, 200):
        lines = order["OrderLines"]
        assert sum(Decimal(str(line["ExtendedPrice"])) for line in lines) == Decimal(str(order["OrderTotal"]))
        for line in lines:
            assert Decimal(str(line["ExtendedPrice"])) == line["Quantity"] * Decimal(str(line["UnitPrice"]))


def test_a_shipments_scans_are_in_order() -> None:
    scans = world.scan_events(7, 3)
    assert [scan["SequenceNumber"] for scan in scans] == list(range(1, 8))
    assert sorted(scan["EventTimestamp"] for scan in scans) == [scan["EventTimestamp"] for scan in scans]
    assert len({scan["ShipmentId"] for scan in scans}) == 1


def test_a_second_call_lands_the_next_orders_and_if_empty_lands_none(lakehouse_folder: Path) -> None:
    python("-m", "data_generator", "--orders", "2")
    python("-m", "data_generator", "--orders", "1")
    assert python("-m", "data_generator", "--if-empty").stdout == "3 orders have landed before; nothing added\n"
    landed = sorted((lakehouse_folder / "Files" / "landing" / "order").iterdir())
    numbers = [order["OrderNumber"] for file in landed for order in json.loads(file.read_text())["data"]]
    assert numbers == ["SO00000001", "SO00000002", "SO00000003"]
    assert landing.Manifest.of(lakehouse_folder).records == {"order": 3, "shipment_scan_event": 21}


def test_a_wrong_option_gets_one_sentence() -> None:
    done = python("-m", "data_generator", "--orders", "0")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("--orders is 0; it must be 1 or more")


def test_a_broker_that_does_not_answer_is_named() -> None:
    with pytest.raises(ConnectionError, match=r"1 messages did not reach 127\.0\.0\.1:9"):
        landing.send("127.0.0.1:9", "scans", [("a", world.scan_events(7, 1))], seconds=1)


def test_scan_events_reach_the_topic_one_message_a_shipment(broker: KafkaBroker, lakehouse_folder: Path) -> None:
    done = python("-m", "data_generator", "--orders", "2", "--kafka", broker.bootstrap_servers)
    assert done.stdout == "landed 2 orders, and 14 scan events on the topic\n"
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "generator", "auto.offset.reset": "earliest"}
    consumer = Consumer(options)
    consumer.subscribe(["shipment_scan_event"])
    messages = consumer.consume(2, timeout=30)
    consumer.close()
    assert [json.loads(message.value())["data"] for message in messages] == [
        json.loads(json.dumps(world.scan_events(7, number))) for number in (1, 2)
    ]
    assert not (lakehouse_folder / "Files" / "landing" / "shipment_scan_event").exists()
