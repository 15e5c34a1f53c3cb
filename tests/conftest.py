"""One Spark session and at most one broker a process, a fresh lakehouse a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers import KafkaBroker, create_spark_session

PROJECT = Path(__file__).resolve().parents[1]

# The notebooks' kernels inherit this: a test run never touches the lakehouse that somebody works in.
os.environ["LAKEHOUSE"] = tempfile.mkdtemp(prefix="lakehouse-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"spark", "broker"} & set(getattr(item, "fixturenames", ())) or item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.spark)


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["LAKEHOUSE"], ignore_errors=True)


@pytest.fixture(autouse=True)
def lakehouse_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a lakehouse of its own, and no broker but the one that it asks for."""
    monkeypatch.setenv("LAKEHOUSE", str(tmp_path / "lakehouse"))
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    return tmp_path / "lakehouse"


@pytest.fixture(scope="session")
def the_session() -> SparkSession:
    return create_spark_session("tests", config={"spark.ui.enabled": "false"})


@pytest.fixture
def spark(the_session: SparkSession) -> Iterator[SparkSession]:
    """The one session; what a test sets in it ends with that test."""
    before = the_session.conf.getAll
    yield the_session
    after = the_session.conf.getAll
    for key in after.keys() - before.keys():
        the_session.conf.unset(key)
    for key, value in before.items():
        if after.get(key) != value:
            the_session.conf.set(key, value)


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


def wait_until(happened: Callable[[], object], seconds: float = 60) -> None:
    """Return as soon as it has happened; fail when the time is up."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"did not happen in {seconds} s"
        threading.Event().wait(0.05)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python in a process of its own, from another folder than the project's."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd="/",
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
