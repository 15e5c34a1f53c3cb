"""Every command and snippet of the README is run, except those that are long or wait for somebody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

README = (PROJECT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line.partition("  #")[0].strip() for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
NOT_RUN = {"make test", "make lab", ".venv/bin/python -m helpers.broker", "conda env create -f environment.yml"}
MAKEFILE = (PROJECT / "Makefile").read_text()


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        cwd=PROJECT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.spark
def test_the_commands_do_what_the_readme_shows(tmp_path: Path) -> None:
    shown = [text.strip() for kind, text in BLOCKS if not kind]
    assert len(shown) == 2
    said = []
    for command in COMMANDS:
        if command not in NOT_RUN:
            done = run(command, LAKEHOUSE=str(tmp_path / "läke house"))
            assert done.returncode == 0, f"{command}: {done.stderr}"
            said.append(done.stdout)
    first, again, more, broker = said
    assert shown[0] in first
    assert "nothing added" in again
    assert re.findall(r" 0 +0 +(?:20|140)$", again, re.MULTILINE) == [
        " 0         0        20",
        " 0         0       140",
    ]
    assert shown[1] in more
    assert broker.startswith("127.0.0.1:")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))))
def test_every_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


@pytest.mark.spark
@pytest.mark.parametrize("snippet", [text for kind, text in BLOCKS if kind == "python"])
def test_every_snippet_runs(snippet: str) -> None:
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "spark.sql.shuffle.partitions" in done.stdout


@pytest.mark.parametrize("room", re.findall(r"`((?:helpers|data_generator|notebooks)/[\w./]*)`", README))
def test_every_room_is_there(room: str) -> None:
    assert (PROJECT / room).exists()


@pytest.mark.parametrize(
    "symptom", re.findall(r"^\| `([^`]+)`", README.partition("## When something")[2], re.MULTILINE)
)
def test_every_symptom_is_a_message_that_the_code_prints(symptom: str) -> None:
    code = "".join(path.read_text() for path in [*PROJECT.glob("helpers/**/*.py"), PROJECT / "Makefile"])
    parts = [part.strip() for part in symptom.split("…") if part.strip()]
    assert all(without_values(part) in without_values(code) for part in parts), symptom


def without_values(text: str) -> str:
    """`Java 17 or 21` in the README is `Java {wanted}` in the code."""
    return re.sub(r"(\{[^}\n]*\}|\b\d[\d.]*)( (to|or) (\{[^}\n]*\}|\d[\d.]*))?", "…", text)


def test_doctor_speaks_of_every_part() -> None:
    done = run("make doctor")
    assert done.returncode == 0, done.stdout
    for part in ("Python", "Java", "versions", "jars", "disk", "memory", "ports"):
        assert part in done.stdout
