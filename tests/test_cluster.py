"""The same code on a cluster: a standalone master and a worker, each a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from helpers import jars, java
from tests.conftest import python, wait_until

pytestmark = pytest.mark.spark

LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
JOB = """
import json, sys
from helpers import SparkConfigurator, create_spark_session
loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": False}
spark = create_spark_session("cluster", config=loopback)
spark.range(0, 100, 1, 4).write.format("delta").save(sys.argv[1])
rows = spark.read.format("delta").load(sys.argv[1]).count()
executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
table = SparkConfigurator(spark).applied()
print(json.dumps([spark.sparkContext.master, rows, len(executors), sorted(table.setting)]))
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    environment = java.environment() | LOOPBACK | {"JAVA_HOME": str(java.home_for_spark(jars.cache()))}
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    log = tmp_path / "cluster.log"

    def start(role: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [
            spark_class,
            f"org.apache.spark.deploy.{role}",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            *arguments,
        ]
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    with log.open("ab") as output, ExitStack() as running:
        for role in ("master.Master", "worker.Worker"):
            found = re.search(r"spark://127\.0\.0\.1:\d+", log.read_text())
            of_role = ["-c", "1", "-m", "1g", "-d", str(tmp_path), found[0]] if found else ["--port", "0"]
            process = running.enter_context(start(role, *of_role))
            running.callback(process.kill)
            said = "Registering worker" if found else r"Starting Spark master at spark://127\.0\.0\.1:\d+"
            wait_until(lambda said=said: re.search(said, log.read_text()), 60)
        yield re.findall(r"spark://127\.0\.0\.1:\d+", log.read_text())[0]


def test_a_cluster_is_used_when_spark_master_says_so(master: str, tmp_path: Path) -> None:
    done = python("-c", JOB, str(tmp_path / "rows"), SPARK_MASTER=master, **LOOPBACK)
    assert done.returncode == 0, done.stderr
    found_master, rows, executors, settings = json.loads(done.stdout)
    assert (found_master, rows) == (master, 100)
    assert executors == 2  # the driver and the worker's
    assert "spark.sql.shuffle.partitions" not in settings  # a cluster's cores are not this machine's
