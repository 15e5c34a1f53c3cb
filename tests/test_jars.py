from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jgo.maven
import pytest

from helpers import jars
from helpers.errors import JarsError
from tests.conftest import python

# Every client of this process and its children would have to go through a port where nobody listens.
UNREACHABLE = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.mcmillan</groupId>
<artifactId>part</artifactId><version>1.0</version></project>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Maven repository on the loopback, holding one part, and an empty cache."""
    part = tmp_path / "repository" / "org" / "mcmillan" / "part" / "1.0"
    part.mkdir(parents=True)
    (part / "part-1.0.pom").write_text(POM)
    with zipfile.ZipFile(part / "part-1.0.jar", "w") as jar:
        jar.writestr("part.txt", "valve")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "repository")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = partial(jgo.maven.MavenContext, remote_repos={"central": f"http://127.0.0.1:{server.server_address[1]}"})
    monkeypatch.setattr(jgo.maven, "MavenContext", context)
    monkeypatch.setattr(jars, "coordinates", lambda: {"broker": ["org.mcmillan:part:1.0"]})
    monkeypatch.setenv("MCMILLAN_CACHE", str(tmp_path / "cache"))
    yield part
    server.shutdown()
    server.server_close()


def test_versions_follow_the_pins() -> None:
    assert jars.coordinates()["spark"][:2] == [
        "io.delta:delta-spark_4.1_2.13:4.2.0",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    ]


def test_nothing_that_pyspark_ships_is_brought_twice() -> None:
    assert {"scala-library", "slf4j-api", "hadoop-client-api"} <= jars.shipped()
    assert not jars.shipped() & {jars._artifact(jar.name) for jar in jars.paths("spark")}


def test_a_set_is_fetched_once(repository: Path) -> None:
    assert [jar.name for jar in jars.paths("broker")] == ["part-1.0.jar"]
    (repository / "part-1.0.jar").unlink()
    assert [jar.name for jar in jars.paths("broker")] == ["part-1.0.jar"]


def test_a_cut_off_download_is_an_error_and_leaves_nothing(repository: Path) -> None:
    whole = (repository / "part-1.0.jar").read_bytes()
    (repository / "part-1.0.jar").write_bytes(whole[:-10])
    with pytest.raises(JarsError, match=r"part-1\.0\.jar arrived damaged"):
        jars.paths("broker")
    assert list(jars.cache().iterdir()) == []
    (repository / "part-1.0.jar").write_bytes(whole)
    assert len(jars.paths("broker")) == 1


def test_a_missing_part_is_named(repository: Path) -> None:
    (repository / "part-1.0.jar").unlink()
    with pytest.raises(JarsError, match="part"):
        jars.paths("broker")


def test_no_network_and_a_cold_cache_is_one_clear_line(tmp_path: Path) -> None:
    done = python("-m", "helpers.jars", MCMILLAN_CACHE=str(tmp_path / "cold"), **UNREACHABLE)
    assert done.returncode == 1
    error = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(error) == 1
    assert "The network is needed once" in error[0]
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_with_warm_jars_session_and_broker_start_with_the_network_off(tmp_path: Path) -> None:
    job = f"""
from helpers import KafkaBroker, create_spark_session
with KafkaBroker() as broker:
    spark = create_spark_session("offline")
    spark.range(3).write.format("delta").save({str(tmp_path / "rows")!r})
    topic = spark.range(3).selectExpr("CAST(id AS STRING) AS value").write.format("kafka")
    topic.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", "rows").save()
    print(spark.read.format("delta").load({str(tmp_path / "rows")!r}).count())
"""
    done = python("-c", job, **UNREACHABLE)
    assert done.stdout.strip() == "3", done.stderr
