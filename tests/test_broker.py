from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from helpers import KafkaBroker
from helpers import broker as broker_module
from helpers.errors import BrokerError, LakehouseError
from tests.conftest import python, wait_until

pytestmark = pytest.mark.spark

HOLD_A_BROKER = """
import os, sys
from helpers import KafkaBroker
broker = KafkaBroker(*sys.argv[1:]).start()
print(broker.port, broker.folder, flush=True)
"""


def send(broker: KafkaBroker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(30) == 0


def received(broker: KafkaBroker, topic: str, count: int) -> list[str]:
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test", "log_level": 0}
    consumer = Consumer(options | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        return [message.value().decode() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def holder(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a broker and waits on its stdin; the parameter is what it does besides."""
    script = HOLD_A_BROKER + getattr(request, "param", "") + "\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_a_broker_answers_and_leaves_nothing_behind() -> None:
    with KafkaBroker() as broker:
        send(broker, "scans", "one", "two")
        assert received(broker, "scans", 2) == ["one", "two"]
        port, folder = broker.port, broker.folder
    assert not listens(port)
    assert not folder.exists()


# os.fork: a child that lives on must not keep the broker
@pytest.mark.parametrize("holder", ["", "import select; os.fork() or select.select([], [], [], 120)"], indirect=True)
def test_it_goes_with_its_process_even_by_kill_9(holder: subprocess.Popen[str]) -> None:
    assert holder.stdout
    port, folder = holder.stdout.readline().split()
    assert listens(int(port))
    holder.kill()
    wait_until(lambda: not listens(int(port)) and not Path(folder).exists(), 10)


def test_several_at_once_do_not_collide() -> None:
    with KafkaBroker() as one, KafkaBroker() as two:
        send(one, "scans", "of one")
        send(two, "scans", "of two")
        assert received(one, "scans", 1) == ["of one"]
        assert received(two, "scans", 1) == ["of two"]


def test_a_folder_keeps_its_topics_over_a_restart_and_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "Bürо №1"  # and its name may be anything
    with KafkaBroker(folder) as broker:
        send(broker, "scans", "first")
    killed = KafkaBroker(folder).start()
    send(killed, "scans", "second")
    assert killed._keeper
    os.killpg(killed._keeper.pid, signal.SIGKILL)
    killed._end()
    assert killed._guard
    killed._guard.release()
    with KafkaBroker(folder) as broker:
        assert received(broker, "scans", 2) == ["first", "second"]


def test_messages_stay_however_old(broker: KafkaBroker) -> None:
    send(broker, "kept", "once")
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    (answer,) = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "kept")]).values()
    settings = answer.result(timeout=30)
    assert (settings["retention.ms"].value, settings["retention.bytes"].value) == ("-1", "-1")


def test_one_broker_a_folder(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "topics"), pytest.raises(BrokerError, match="another broker runs in"):
        KafkaBroker(tmp_path / "topics").start()


def test_a_taken_port_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BrokerError, match=f"port {port} is taken"):
            KafkaBroker(port=port).start()


def test_a_port_lost_between_choice_and_use_is_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    free = broker_module._free_port
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        offered = iter([free(), other.getsockname()[1]])
        monkeypatch.setattr(broker_module, "_free_port", lambda: next(offered, None) or free())
        with KafkaBroker() as broker:
            assert broker.port != other.getsockname()[1]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    with pytest.raises(LakehouseError, match="a file"):
        KafkaBroker(tmp_path / "a file" / "topics").start()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "topics"):
        pass
    identity = tmp_path / "topics" / "data" / "meta.properties"
    identity.write_text(identity.read_text().replace("node.id=1", "node.id=2"))
    with pytest.raises(BrokerError, match=r"did not start: .*node"):
        KafkaBroker(tmp_path / "topics").start()


def test_a_command_finds_the_broker_and_its_exit_code_is_kept() -> None:
    done = python("-m", "helpers.broker", "--", "sh", "-c", "echo at $KAFKA_BOOTSTRAP_SERVERS; exit 3")
    assert done.stdout.startswith("at 127.0.0.1:")
    assert done.returncode == 3


def test_a_broker_that_the_user_names_is_used(lakehouse_folder: Path) -> None:
    done = python(
        "-m", "helpers.broker", "--lakehouse", "--", "printenv", "KAFKA_BOOTSTRAP_SERVERS",
        KAFKA_BOOTSTRAP_SERVERS="kafka.mcmillan.example:9092",
    )  # fmt: skip
    assert done.stdout == "kafka.mcmillan.example:9092\n"
    assert not (lakehouse_folder / "Files" / "broker").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_stops_it_in_good_order(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "helpers.broker", "--folder", str(tmp_path / "topics")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        port = int(line.split()[1].rpartition(":")[2])
        process.send_signal(how)
        assert process.wait(30) == 130
    assert not listens(port)
    assert (tmp_path / "topics" / "data" / ".kafka_cleanshutdown").exists()
