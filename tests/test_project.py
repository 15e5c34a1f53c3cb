"""The project's own promises: pins, wheel, rooms, public names, docstrings."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from pyspark.sql import SparkSession

import helpers
from data_generator import landing, world
from helpers import KafkaBroker, envelope, schemas, sources
from tests.conftest import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
EXTRAS = PYPROJECT["optional-dependencies"]
LOCK = (PROJECT / "requirements.lock").read_text()
MODULES = [
    ".".join(path.relative_to(PROJECT).with_suffix("").parts)
    for package in ("helpers", "data_generator")
    for path in sorted((PROJECT / package).rglob("*.py"))
    if path.name != "__main__.py"
]


def test_every_pin_is_exact_and_locked_with_hashes() -> None:
    locked = dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)", LOCK, re.MULTILINE))
    for text in [*PYPROJECT["dependencies"], *EXTRAS["dev"], *EXTRAS["java"]]:
        pin = Requirement(text)
        assert str(pin.specifier) == f"=={locked[pin.name]}"
    entries = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_lock_names_no_host() -> None:
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find" not in LOCK


def test_conda_users_get_the_same_pins_and_a_java() -> None:
    asked = yaml.safe_load((PROJECT / "environment.yml").read_text())["dependencies"]
    (by_pip,) = [part["pip"] for part in asked if isinstance(part, dict)]
    assert sorted(by_pip) == sorted(["--editable .", *PYPROJECT["dependencies"], *EXTRAS["dev"]])
    assert "openjdk=21" in asked
    assert "python=3.12" in asked


def test_the_wheel_holds_both_packages_and_nothing_else(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        ".",
    ]
    source = tmp_path / "source"  # a copy: building leaves traces beside the source
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "helpers", "data_generator", "tests"):
        (source / name).symlink_to(PROJECT / name)
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"helpers", "data_generator"}
    assert {"helpers/log4j2.properties", "helpers/pipeline/__main__.py", "data_generator/world.py"} <= set(names)


def test_the_environment_has_pip() -> None:
    subprocess.run([sys.executable, "-m", "pip", "--version"], check=True, capture_output=True)


def test_ci_calls_make_test_and_nothing_else() -> None:
    script = (PROJECT / ".ci" / "run").read_text().splitlines()
    assert script == ["#!/bin/sh", 'cd "$(dirname "$0")/.." && exec make test']
    assert os.access(PROJECT / ".ci" / "run", os.X_OK)


def test_public_names_are_sorted_and_there() -> None:
    assert helpers.__all__ == [
        "KafkaBroker", "SparkConfigurator", "broker", "create_spark_session", "envelope", "jars", "lakehouse",
        "schemas", "sinks", "sources",
    ]  # fmt: skip
    for name in helpers.__all__:
        assert getattr(helpers, name) is not None
    with pytest.raises(AttributeError, match="it has KafkaBroker"):
        _ = helpers.nonsense


@pytest.mark.parametrize(("package", "other"), [("helpers", "data_generator"), ("data_generator", "helpers")])
def test_the_two_packages_do_not_know_each_other(package: str, other: str) -> None:
    for path in (PROJECT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", [])] + [getattr(node, "module", None) or ""]
            assert not any(name.split(".")[0] == other for name in names), path


def test_setting_up_needs_the_standard_library_alone() -> None:
    tree = ast.parse((PROJECT / "helpers" / "environment.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_every_docstring_example_is_true(spark: SparkSession, broker: KafkaBroker, lakehouse_folder: Path) -> None:
    landing.land(lakehouse_folder, "order", "a", list(world.orders(7, 1, 20)))
    landed = sources.landing(spark, "order")
    names = {
        "spark": spark,
        "broker": broker,
        "landed": landed,
        "orders": landed.transform(envelope.open_envelope(schemas.ORDER)),
        "schemas": schemas,
    }
    tried = 0
    for name in MODULES:
        os.environ["LAKEHOUSE"] = str(lakehouse_folder)
        module = importlib.import_module(name)
        given = {name: value for name, value in names.items() if not hasattr(module, name)}
        result = doctest.testmod(module, extraglobs=given)
        assert result.failed == 0, name
        tried += result.attempted
    assert tried > 15
