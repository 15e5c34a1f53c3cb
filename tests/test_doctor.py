from __future__ import annotations

import shutil
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import doctor
from helpers.errors import JavaError


def advice(what: str) -> str:
    (finding,) = [finding for finding in doctor.examine() if finding.what == what]
    return finding.advice


def test_this_machine_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main() == 0, capsys.readouterr().out
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in said] == ["Python", "Java", "versions", "jars", "disk", "memory", "ports"]
    assert {line[:2] for line in said} == {"ok"}


def test_a_wrong_python_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(major=3, minor=9, micro=2)
    monkeypatch.setattr(doctor.sys, "version_info", type("Old", (tuple,), vars(old))((3, 9, 2)))
    assert "PYTHON=python3.12" in advice("Python")


def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none() -> Path:
        raise JavaError("Spark needs Java 17 or 21; type this")

    monkeypatch.setattr(doctor.java, "find", none)
    assert doctor.main() == 1
    assert "→ Spark needs Java 17 or 21; type this" in capsys.readouterr().out


def test_a_package_of_another_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor._installed
    monkeypatch.setattr(doctor, "_installed", lambda name: "3.5.0" if name == "pyspark" else installed(name))
    (finding,) = [finding for finding in doctor.examine() if finding.what == "versions"]
    assert finding.found == "1 differ: pyspark 3.5.0 (locked 4.1.1)"
    assert finding.advice == "make clean, then make run"


def test_packages_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", missing)
    monkeypatch.setattr(doctor.jars, "version", missing)
    assert advice("versions") == "make run"
    assert advice("jars") == "make run"


def test_missing_jars_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MCMILLAN_CACHE", str(tmp_path))
    assert advice("jars").endswith("-m helpers.jars")


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1e9))
    assert "LAKEHOUSE" in advice("disk")


def test_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 500_000}.__getitem__)
    assert advice("memory") == "export SPARK_DRIVER_MEMORY=1g"


def test_a_machine_without_ports_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert "firewall" in advice("ports")
