"""A real Kafka broker as a child process: KRaft, one node, no Docker; gone with the process that started it.

python -m helpers.broker                          # until Ctrl-C; topics are forgotten
python -m helpers.broker --folder my_topics       # topics stay
python -m helpers.broker -- python my_job.py      # for one command, which finds it in KAFKA_BOOTSTRAP_SERVERS
"""

from __future__ import annotations

import argparse
import base64
import logging
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import weakref
from pathlib import Path

from filelock import FileLock, Timeout

from helpers import command, jars, java, lakehouse
from helpers.errors import BrokerError, LakehouseError

log = logging.getLogger("helpers.broker")

HOST = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 10
ATTEMPTS = 3

# The folder is the working directory, so no path needs to be escaped here, whatever letters it holds.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
log.dirs=data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# what was sent stays, however old its timestamp
log.retention.ms=-1
log.retention.bytes=-1
offsets.retention.minutes=2147483647
# after a kill the next start need not wait nine seconds for the dead broker's lease to run out
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
"""

LOGGING = """\
log4j.rootLogger=WARN, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File=broker.log
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""

# The shell's stdin is a pipe from us: it closes when we close it and when we die, by kill -9 too. The broker alone
# holds our end of stdout, so the end of that pipe says that the broker has gone.
KEEPER = """
"$@" </dev/null &
broker=$!
trap '' HUP INT TERM
exec >/dev/null
cat >/dev/null
kill -9 $broker 2>/dev/null
wait $broker
[ -z "$REMOVE" ] || rm -rf "$REMOVE"
"""


# A forked child must not hold the pipe open when we are gone.
_started: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for keeper in _started:
        if keeper.stdin:
            keeper.stdin.close()


os.register_at_fork(after_in_child=_let_go_in_child)


class KafkaBroker:
    """A Kafka broker on free ports; with a `folder` its topics outlive it, without one they go with it.

    >>> with KafkaBroker() as broker:
    ...     broker.bootstrap_servers.rpartition(":")[0]
    '127.0.0.1'
    """

    def __init__(self, folder: Path | str | None = None, *, port: int | None = None) -> None:
        self.port = port or 0
        self._port_is_given = port is not None
        self._is_temporary = folder is None
        self.folder = Path(folder).absolute() if folder else Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._guard: FileLock | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> KafkaBroker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> KafkaBroker:
        """Start it and return when a client's metadata request succeeds."""
        began = time.monotonic()
        if self._port_is_given and not _is_free(self.port):
            raise BrokerError(
                f"port {self.port} is taken: stop what listens there, or leave the port out for a free one"
            )
        self._claim_folder()
        try:
            complaint = ""
            for _ in range(ATTEMPTS):
                complaint = self._attempt()
                if not complaint:
                    log.info("broker at %s, up in %.1f s", self.bootstrap_servers, time.monotonic() - began)
                    return self
                # between choosing a free port and using it, another program may have taken it
                if "in use" not in complaint:
                    break
            raise BrokerError(
                f"the broker did not start: {complaint}. Type `make doctor` to see whether Java and disk are well"
            )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it; without a folder its topics go too."""
        if self._keeper and not self._is_temporary and self._is_alive():
            os.killpg(self._keeper.pid, signal.SIGTERM)  # a clean end saves the next start a recovery
            self._wait_for_end(STOP_SECONDS)
        self._end()
        if self._guard:
            self._guard.release()
            self._guard = None
        if self._is_temporary and self.folder.name:
            shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self) -> None:
        """Block until the broker ends by itself."""
        self._wait_for_end(None)

    def _attempt(self) -> str:
        """Launch it and wait; returns what it complained of, or nothing if it answers."""
        self._launch()
        if self._answers():
            return ""
        complaint = self._complaint() or f"no answer in {START_SECONDS} s"
        self._end()
        return complaint

    def _claim_folder(self) -> None:
        if self._is_temporary:
            self.folder = Path(tempfile.mkdtemp(prefix="kafka-"))
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._guard = FileLock(self.folder / "broker.lock")
            self._guard.acquire(timeout=0)
        except Timeout:
            self._guard = None
            raise BrokerError(
                f"another broker runs in {self.folder}, perhaps another `make run`: wait for it, or use another folder"
            ) from None
        except OSError as error:
            raise LakehouseError(f"{self.folder} cannot be written ({error.strerror}): use another folder") from error

    def _launch(self) -> None:
        controller = _free_port()
        if not self._port_is_given:
            self.port = _free_port()
        command = [
            str(java.find()),
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            "-Dlog4j.configuration=file:log4j.properties",
        ]
        command += ["-cp", str(jars.paths("broker")[0].with_name("*"))]
        try:
            self.folder.mkdir(exist_ok=True)  # a temporary one has gone with the attempt before
            (self.folder / "broker.log").write_text("")
            (self.folder / "log4j.properties").write_text(LOGGING)
            properties = PROPERTIES.format(host=HOST, port=self.port, controller=controller)
            (self.folder / "server.properties").write_text(properties)
            if not (self.folder / "data" / "meta.properties").exists():
                self._format(command)
        except OSError as error:
            raise LakehouseError(f"{self.folder} cannot be written ({error.strerror}): use another folder") from error
        environment = java.environment() | {"REMOVE": str(self.folder) if self._is_temporary else ""}
        with (self.folder / "broker.log").open("ab") as complaints:
            self._keeper = subprocess.Popen(
                ["/bin/sh", "-c", KEEPER, "broker", *command, "kafka.Kafka", "server.properties"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,  # Ctrl-C is for us; we then stop the broker in good order
            )
        _started.add(self._keeper)

    def _format(self, command: list[str]) -> None:
        shutil.rmtree(self.folder / "data", ignore_errors=True)  # what a killed format left behind
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_storage = ["kafka.tools.StorageTool", "format", "--standalone", "-c", "server.properties"]
        done = subprocess.run(
            [*command, *format_storage, f"--cluster-id={identity}"],
            cwd=self.folder,
            env=java.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise BrokerError(f"{self.folder} could not be made a broker's folder: {said[-1]}")

    def _answers(self) -> bool:
        """Whether a metadata request succeeds before the broker ends or the time is up."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        client = AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 200}
        )
        deadline = time.monotonic() + START_SECONDS
        while self._is_alive() and time.monotonic() < deadline:
            try:
                if client.list_topics(timeout=0.5).brokers:
                    return True
            except KafkaException as error:
                log.debug("not yet: %s", error)
        return False

    def _is_alive(self) -> bool:
        return not self._wait_for_end(0)

    def _wait_for_end(self, seconds: float | None) -> bool:
        """Whether the broker has ended within that time; it holds the other end of this pipe and says nothing there."""
        if self._keeper is None or self._keeper.stdout is None:
            return True
        return bool(select.select([self._keeper.stdout], [], [], seconds)[0])

    def _end(self) -> None:
        if self._keeper:
            keeper, self._keeper = self._keeper, None
            with keeper:  # closes both pipes, at which the shell kills the broker, and waits for it
                pass

    def _complaint(self) -> str:
        """The last thing that the broker's log calls an error."""
        written = (self.folder / "broker.log").read_text(errors="replace") if self.folder.is_dir() else ""
        return next(iter(re.findall(r"^.*(?:ERROR|Exception|Error:).*$", written, re.MULTILINE)[-1:]), "")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers.broker", description="A local Kafka broker.")
    parser.add_argument("--folder", help="keep the topics here; without it they are forgotten")
    parser.add_argument("--lakehouse", action="store_true", help="keep the topics in the lakehouse, in Files/broker")
    parser.add_argument("--port", type=int, help="listen here; without it on a free port")
    parser.add_argument("command", nargs="*", help="run this with KAFKA_BOOTSTRAP_SERVERS set, then stop")
    options = parser.parse_args(arguments)
    if options.lakehouse and (elsewhere := os.environ.get("KAFKA_BOOTSTRAP_SERVERS")):
        log.info("broker at %s, as KAFKA_BOOTSTRAP_SERVERS says", elsewhere)
        return subprocess.run(options.command, check=False).returncode
    if options.lakehouse:
        lakehouse.check_space()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = lakehouse.files("broker") if options.lakehouse else options.folder
    with KafkaBroker(folder, port=options.port) as broker:
        if options.command:
            environment = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
            return subprocess.run(options.command, env=environment, check=False).returncode
        print(f"export KAFKA_BOOTSTRAP_SERVERS={broker.bootstrap_servers}   # Ctrl-C stops the broker", flush=True)
        broker.wait()
        raise BrokerError(f"the broker ended by itself; its log is {broker.folder / 'broker.log'}")


if __name__ == "__main__":
    sys.exit(command.run(main))
