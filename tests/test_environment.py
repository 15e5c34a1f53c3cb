from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import environment
from tests.conftest import PROJECT, wait_until


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is not set up."""
    root = tmp_path / "a projéct"
    root.mkdir()
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(PROJECT / name, root / name)
    for name, path in {"ROOT": "", "VENV": ".venv", "PYTHON": ".venv/bin/python", "LOCK": "requirements.lock",
                       "STAMP": ".venv/.ready"}.items():  # fmt: skip
        monkeypatch.setattr(environment, name, root / path)
    return root


def finished(exit_code: int = 0) -> None:
    """A set-up that is complete, with a Python that gives this exit code whatever it is asked."""
    environment.PYTHON.parent.mkdir(parents=True)
    environment.PYTHON.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    environment.PYTHON.chmod(0o755)
    environment.STAMP.write_text(environment.fingerprint())


@pytest.mark.usefixtures("project")
def test_a_second_call_goes_straight_to_work(capsys: pytest.CaptureFixture[str]) -> None:
    finished()
    environment.set_up()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_new_pin_means_a_new_set_up(project: Path, name: str) -> None:
    finished()
    assert environment.ready()
    with (project / name).open("a") as file:
        file.write("# changed\n")
    assert not environment.ready()


@pytest.mark.usefixtures("project")
def test_a_python_that_no_longer_runs_means_a_new_set_up() -> None:
    finished(exit_code=127)
    assert not environment.ready()


@pytest.mark.usefixtures("project")
def test_a_wrong_python_is_named_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    with pytest.raises(SystemExit, match=r"Python 3\.11 to 3\.14 is needed, .* is 3\.9"):
        environment.set_up()
    assert not environment.VENV.exists()


@pytest.mark.usefixtures("project")
def test_a_full_disk_is_named_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5e8))
    with pytest.raises(SystemExit, match=r"0\.5 GB are free, 3 GB are needed"):
        environment.set_up()
    assert not environment.VENV.exists()


@pytest.mark.usefixtures("project")
def test_a_python_without_venv_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=1, stdout="", stderr="ensurepip is not available\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit, match=r"ensurepip is not available[\s\S]*apt install python3-venv"):
        environment.set_up()


def test_a_second_set_up_waits_for_the_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installs: list[str] = []
    monkeypatch.setattr(environment, "install", lambda: installs.append("again"))
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda text, **_: said.append(text))
    with (project / "pyproject.toml").open() as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        second = threading.Thread(target=environment.set_up)
        second.start()
        wait_until(lambda: said, 10)
        finished()
    second.join(10)
    assert said == ["setup: another call is setting up; waiting for it"]
    assert installs == []


@pytest.mark.usefixtures("project")
def test_no_network_is_told_and_the_next_call_tries_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # a fresh venv, and an index where nobody listens
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(SystemExit, match="The package index cannot be reached"):
        environment.set_up()
    assert not environment.ready()
    assert "setup: .venv with Python" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ERROR: [Errno 28] No space left on device", "The disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "do not trust this network"),
        ("ERROR: [Errno 13] Permission denied: '/x'", "cannot be written"),
    ],
)
def test_what_pip_says_is_explained(said: str, advice: str) -> None:
    assert advice in environment.explain([said])


def test_clean_removes_what_the_project_made(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = project / "notes.txt"
    mine.write_text("keep me")
    for made in (".venv/bin", "helpers/__pycache__", ".ruff_cache", "lakehouse/Tables/bronze/order"):
        (project / made).mkdir(parents=True)
    landed = project / "lakehouse" / "Files" / "landing" / "order" / "order_1.json"
    landed.parent.mkdir(parents=True)
    landed.write_text("{}")
    manifest = project / "lakehouse" / "Files" / "manifest" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"files": ["Files/landing/order/order_1.json"]}))
    environment.clean()
    assert sorted(path.name for path in project.iterdir()) == [
        "helpers", "notes.txt", "pyproject.toml", "requirements.lock",
    ]  # fmt: skip
    assert list((project / "helpers").iterdir()) == []


def test_clean_keeps_files_that_others_landed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = project / "lakehouse" / "Files"
    for entity, name in [("order", "order_1.json"), ("order", "order_theirs.json")]:
        (files / "landing" / entity).mkdir(parents=True, exist_ok=True)
        (files / "landing" / entity / name).write_text("{}")
    (files / "manifest").mkdir()
    (files / "manifest" / "manifest.json").write_text(json.dumps({"files": ["Files/landing/order/order_1.json"]}))
    environment.clean()
    assert [path.name for path in files.rglob("*") if path.is_file()] == ["order_theirs.json"]
    assert "kept 1 landed files" in capsys.readouterr().out
