"""`make run` when something is wrong: a clear line, nothing lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PROJECT

MAKE_RUN = ["make", "-C", str(PROJECT), "--no-print-directory", "run"]


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`make run` from another working directory."""
    return subprocess.Popen(
        [*MAKE_RUN, *arguments],
        cwd="/",
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def errors(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("error:")]


@pytest.mark.spark
def test_two_runs_at_once_do_not_hurt_each_other(lakehouse_folder: Path) -> None:
    first, second = start(), start()
    said = [process.communicate(timeout=300) for process in (first, second)]
    assert sorted([first.returncode, second.returncode]) == [0, 2]
    refused = said[0 if first.returncode else 1][1]
    assert "another broker runs in" in errors(refused)[0]
    assert "Traceback" not in refused
    process = start()
    assert [line.split()[-3:] for line in process.communicate(timeout=300)[0].splitlines() if "bronze." in line] == [
        ["0", "0", "20"],
        ["0", "0", "140"],
    ]


def test_a_folder_that_cannot_be_made_is_one_line() -> None:
    process = start(LAKEHOUSE="/dev/null/lakehouse")
    said = process.communicate(timeout=60)[1]
    assert process.returncode
    assert len(errors(said)) == 1
    assert "set LAKEHOUSE" in errors(said)[0]
    assert "Traceback" not in said


def test_no_fitting_python_is_one_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 || exit 1\n')
    old.chmod(0o755)
    (tmp_path / "make").symlink_to("/usr/bin/make")
    (tmp_path / "sh").symlink_to("/bin/sh")
    process = start(PATH=str(tmp_path))
    said = process.communicate(timeout=60)[1]
    assert process.returncode
    assert errors(said)[0].startswith("error: Python 3.11 to 3.14 is needed, python3 is Python 3.9.2.")
