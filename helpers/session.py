"""The Spark session, local, on a cluster or in Fabric, and the settings that matter on each."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from helpers import jars, java, lakehouse
from helpers.errors import SessionError, root_cause

log = logging.getLogger(__name__)

LOG4J = Path(__file__).with_name("log4j2.properties")
MARKER = "spark.mcmillan.set_by_helpers"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Setting:
    """One setting, and why it is not left at Spark's default."""

    key: str
    value: str
    why: str


def create_spark_session(
    app_name: str = "mcmillan", master: str | None = None, config: Mapping[str, Any] | None = None
) -> SparkSession:
    """The session that is there (in Fabric there always is one), or a new one: local, or on `master` / SPARK_MASTER.

    >>> spark = create_spark_session("explore", config={"spark.sql.shuffle.partitions": 4})
    >>> spark.conf.get("spark.sql.shuffle.partitions")
    '4'
    """
    wanted = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (config or {}).items()
    }
    spark = _existing() or _start(app_name, master, wanted)
    for key, value in wanted.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
        elif spark.conf.get(key, None) != value and key != "spark.jars":
            log.warning("%s is %s since the session started and stays so", key, spark.conf.get(key, None))
    SparkConfigurator(spark).apply(users=wanted)
    return spark


class SparkConfigurator:
    """Applies the settings that a running session still takes, and tells who set what.

    >>> SparkConfigurator(spark).apply().applied().columns.to_list()
    ['setting', 'value', 'set_by', 'why']
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def apply(self, users: Iterable[str] = ()) -> SparkConfigurator:
        """Set what the user has not set; `users` are the settings that were taken over from us just now."""
        explicit, ours = self.spark.conf.getAll, self._ours() - set(users)
        for setting in running_settings(self.spark):
            if setting.key not in explicit:
                self.spark.conf.set(setting.key, setting.value)
                ours.add(setting.key)
        self.spark.conf.set(MARKER, ",".join(sorted(ours)))
        return self

    def applied(self) -> pd.DataFrame:
        """Every setting that the helpers care for: its live value, who set it, and why it matters."""
        explicit, ours = self.spark.conf.getAll, self._ours()
        wanted = {**(START if _is_local(self.spark) else {})}
        wanted |= {each.key: each.why for each in running_settings(self.spark)}

        def set_by(key: str) -> str:
            return "helpers" if key in ours else "user" if key in explicit else "Spark"

        rows = [(key, self.spark.conf.get(key, None), set_by(key), why) for key, why in wanted.items()]
        return pd.DataFrame(rows, columns=["setting", "value", "set_by", "why"])

    def _ours(self) -> set[str]:
        return set(filter(None, (self.spark.conf.get(MARKER, "") or "").split(",")))


# What can only be said before Spark starts on this machine, and why.
START = {
    "spark.sql.extensions": "Delta's commands",
    "spark.sql.catalog.spark_catalog": "Delta's tables",
    "spark.jars": "Delta and the Kafka connector",
    "spark.driver.host": "no firewall or VPN stands between driver and executor",
    "spark.driver.bindAddress": "nobody else on the network reaches the driver",
    "spark.driver.memory": "a quarter of this machine's memory, 1 to 8 GB",
    "spark.sql.warehouse.dir": "tables go into the lakehouse",
    "spark.ui.showConsoleProgress": "no progress bars in saved notebook outputs",
}
ON_A_CLUSTER = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.jars")


def start_values() -> dict[str, str]:
    """The values for `START`, of this machine."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.jars": ",".join(jar.as_uri() for jar in jars.paths("spark")),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": driver_memory(),
        "spark.sql.warehouse.dir": (lakehouse.root() / "Tables").as_uri(),
        "spark.ui.showConsoleProgress": "false",
    }


def running_settings(spark: SparkSession) -> list[Setting]:
    """What a running session takes too, in Fabric and on a cluster as well."""
    settings = [
        Setting("spark.sql.adaptive.enabled", "true", "batch queries follow the data's real size; streams do without"),
        Setting("spark.sql.parquet.compression.codec", "zstd", "smaller files than snappy"),
        Setting("spark.databricks.delta.optimizeWrite.enabled", "true", "few files a commit rather than one a task"),
        Setting("spark.databricks.delta.autoCompact.enabled", "true", "small files of many batches become larger ones"),
        Setting("spark.sql.streaming.stateStore.providerClass", ROCKSDB, "state beyond the heap; needed by timers"),
        Setting(
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
            "true",
            "a batch uploads its changes, not its snapshot",
        ),
        Setting("spark.sql.session.timeZone", "UTC", "the same rows on every machine"),
    ]
    if _is_local(spark):
        cores = str(spark.sparkContext.defaultParallelism)
        settings += [
            Setting(
                "spark.sql.shuffle.partitions", cores, "as many as cores; 200 tiny tasks cost more than they carry"
            ),
            Setting(
                "spark.databricks.delta.snapshotPartitions", "2", "a first read of a small table runs 2 tasks, not 50"
            ),
        ]
    vorder = "spark.sql.parquet.vorder.default"
    if spark.conf.isModifiable(vorder) or vorder in spark.conf.getAll:
        settings.append(Setting(vorder, "true", "files sorted for Fabric's readers; other runtimes do not know it"))
    return settings


def driver_memory() -> str:
    """A quarter of the memory that this process may use, between 1 and 8 GB."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    container = Path("/sys/fs/cgroup/memory.max")
    if container.is_file() and (limit := container.read_text().strip()).isdigit():
        limits.append(int(limit))
    return f"{max(1024, min(8192, min(limits) // 4 // 2**20))}m"


def user_settings(config: Mapping[str, str]) -> dict[str, str]:
    """What the user has set: spark-defaults.conf, then PYSPARK_SUBMIT_ARGS, then `config`, the last one wins."""
    found: dict[str, str] = {}
    conf = Path(os.environ.get("SPARK_CONF_DIR") or _spark_home() / "conf", "spark-defaults.conf")
    if conf.is_file():
        lines = (line.strip() for line in conf.read_text(encoding="utf-8").splitlines())
        pairs = (re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in lines if line.startswith("spark."))
        found.update((key, value) for key, value in pairs)
    for flag, value in pairwise(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))):
        if flag in ("--conf", "-c"):
            key, _, value = value.partition("=")
            found[key] = value
        elif flag in _FLAGS:
            found[_FLAGS[flag]] = value
    if memory := os.environ.get("SPARK_DRIVER_MEMORY"):
        found.setdefault("spark.driver.memory", memory)
    return found | dict(config)


_FLAGS = {"--driver-memory": "spark.driver.memory", "--master": "spark.master", "--jars": "spark.jars"}


def _existing() -> SparkSession | None:
    """The session of this process, also when another thread made it."""
    active = SparkSession.getActiveSession()
    return active or (SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None)


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local") and not lakehouse.on_fabric()


def _start(app_name: str, master: str | None, config: dict[str, str]) -> SparkSession:
    if lakehouse.on_fabric():  # a Spark job there has no session yet, and the runtime knows the rest
        return SparkSession.builder.appName(app_name).getOrCreate()
    users = user_settings(config)
    master = master or os.environ.get("SPARK_MASTER") or users.get("spark.master") or "local[*]"
    local = master.startswith("local")
    values = {key: value for key, value in start_values().items() if local or key in ON_A_CLUSTER}
    ours = {key: value for key, value in values.items() if key not in users}
    if "spark.jars" in users:  # both are needed: the user's and ours
        users["spark.jars"] += f",{values['spark.jars']}"
    builder = SparkSession.builder.appName(app_name).master(master).config(MARKER, ",".join(ours))
    for key, value in {**ours, **users}.items():
        builder = builder.config(key, value)
    with _launch_environment(local), _quiet_in_notebooks():
        try:
            return builder.getOrCreate()
        except Exception as error:
            raise SessionError(
                f"Spark did not start on {master}: {root_cause(error)}. Type `make doctor` to see what is missing"
            ) from error


@contextmanager
def _launch_environment(local: bool) -> Iterator[None]:
    """What the JVM must find in its environment when it starts; put back afterwards."""
    before = dict(os.environ)
    os.environ.update(java.environment())
    os.environ["JAVA_HOME"] = str(java.home_for_spark(jars.cache()))
    os.environ["SPARK_HOME"] = str(_spark_home())
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not Path(os.environ.get("SPARK_CONF_DIR") or _spark_home() / "conf", "log4j2.properties").exists():
        options = os.environ.get("SPARK_SUBMIT_OPTS", "")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -Dlog4j2.configurationFile={LOG4J.as_uri()}".strip()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _spark_home() -> Path:
    """pyspark's own Spark: another version in SPARK_HOME would not understand it."""
    own = Path(pyspark.__file__).parent
    named = os.environ.get("SPARK_HOME")
    if not named or Path(named).resolve() == own.resolve():
        return own
    if list(Path(named, "jars").glob(f"spark-core_*-{pyspark.__version__}.jar")):
        return Path(named)
    log.warning("SPARK_HOME=%s does not hold Spark %s: using pyspark's own", named, pyspark.__version__)
    return own


@contextmanager
def _quiet_in_notebooks() -> Iterator[None]:
    """In a notebook, give the JVM a log file in place of stderr, which the kernel would save as a cell's output."""
    if "ipykernel" not in sys.modules:
        yield
        return
    with (lakehouse.files("logs") / "spark.log").open("ab") as logfile:
        kept = os.dup(2)
        os.dup2(logfile.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
