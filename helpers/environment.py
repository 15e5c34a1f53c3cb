"""Makes `.venv` what pyproject.toml and requirements.lock say, or takes away what the project made.

Run by whatever Python the machine has, before anything is installed: standard library only.

    python3 helpers/environment.py            # set up what is missing; at once if nothing is
    python3 helpers/environment.py --clean    # remove .venv, caches and ./lakehouse
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".ready"
NEEDED_GB = 3
OLDEST, NEWEST = (3, 11), (3, 14)
MADE = (".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "mcmillan_streaming_workshop.egg-info")


def fingerprint() -> str:
    """What `.venv` depends on; the folder counts, because a moved project has a `.venv` that points elsewhere."""
    parts = [(ROOT / "pyproject.toml").read_bytes(), LOCK.read_bytes(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def ready(this_python: bool = False) -> bool:
    """Whether `.venv` is complete and runs; with `this_python` also whether it is of the same version."""
    stamped = STAMP.is_file() and STAMP.read_text() == fingerprint()
    return stamped and runs(f"import helpers, sys; sys.exit({this_python} and sys.version != {sys.version!r})")


def runs(code: str) -> bool:
    """Whether the Python in `.venv` runs this; it fails when the system's Python below it was replaced."""
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", code], capture_output=True, check=False).returncode == 0


def set_up(this_python: bool = False) -> None:
    """Bring `.venv` and the jars up to date, one process at a time."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SystemExit(
            f"error: Python {version(OLDEST)} to {version(NEWEST)} is needed, {sys.executable} is "
            f"{version(sys.version_info[:2])}. Install one, or name one: make run PYTHON=python3.12"
        )
    if ready(this_python):
        return
    with (ROOT / "pyproject.toml").open() as guard:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("setup: another call is setting up; waiting for it", flush=True)
            fcntl.flock(guard, fcntl.LOCK_EX)
        if ready(this_python):
            return
        try:
            install()
        except OSError as error:
            raise SystemExit(
                f"error: {VENV} could not be made: {error}. Free the disk or make the folder writable, "
                "then type the same again"
            ) from error


def install() -> None:
    begun = time.monotonic()
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GB:
        raise OSError(f"{free:.1f} GB are free, {NEEDED_GB} GB are needed")
    print(f"setup: .venv with Python {version(sys.version_info[:3])}", flush=True)
    STAMP.unlink(missing_ok=True)
    # another Python's packages would stay in a folder that this one does not read
    fresh = [] if runs(f"import sys; sys.exit(sys.version != {sys.version!r})") else ["--clear"]
    made = subprocess.run([sys.executable, "-m", "venv", *fresh, VENV], capture_output=True, text=True, check=False)
    if made.returncode:
        raise SystemExit(
            f"error: {sys.executable} cannot make a virtual environment: {last_line(made.stdout + made.stderr)}\n"
            "On Debian, Ubuntu and WSL: sudo apt install python3-venv, then type the same again"
        )
    lock = LOCK.read_text()
    count = len(re.findall(r"^[a-z0-9]\S*==", lock, re.MULTILINE))
    # pyspark comes as source: the locked setuptools builds it, not whichever is newest on the day
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as build:
        build.write(re.findall(r"^setuptools==.*(?:\n    .*)*", lock, re.MULTILINE)[0] + "\n")
        build.flush()
        pip("build tool", 1, "--require-hashes", "-r", build.name)
    pip("packages", count, "--require-hashes", "--no-build-isolation", "-r", str(LOCK))
    pip("workshop", 1, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(fingerprint())
    if subprocess.run([PYTHON, "-m", "helpers.jars"], cwd=ROOT, check=False).returncode:
        raise SystemExit(1)
    print(f"setup: done in {time.monotonic() - begun:.0f} s", flush=True)


def pip(what: str, count: int, *arguments: str) -> None:
    """`pip install` with one line of progress in place of its hundreds, which are kept for the case of failure."""
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *arguments]
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PIP_USER": "0"}
    ) as process:
        assert process.stdout
        reader = threading.Thread(target=said.extend, args=(iter(process.stdout.readline, ""),))
        reader.start()
        watch(what, count, said, process)
        reader.join()
    if process.returncode:
        raise SystemExit(f"error: the {what} could not be installed.\n{explain(said)}")


def watch(what: str, count: int, said: list[str], process: subprocess.Popen[str]) -> None:
    """Say where pip is: every second over the same line on a terminal, every ten in a log."""
    begun, shown, terminal = time.monotonic(), 0.0, sys.stdout.isatty()
    while process.poll() is None:
        spent = time.monotonic() - begun
        if spent - shown >= (1 if terminal else 10):
            shown = spent
            got = sum(line.startswith(("Collecting", "Requirement already")) for line in said)
            text = f"setup: {what} {min(got, count)}/{count}, {spent:.0f} s: {said[-1].strip()[:60] if said else ''}"
            print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", flush=True)
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    if terminal and shown:
        print("\r\033[K", end="", flush=True)


def explain(said: list[str]) -> str:
    """The end of pip's output, and what to do about the usual causes."""
    text = "".join(said)
    causes = {
        "No space left": "The disk is full: free some space",
        "Permission denied": "The folder cannot be written: make it writable",
        "Temporary failure|NewConnectionError|Could not fetch URL|ConnectTimeout|No matching distribution": (
            "The package index cannot be reached: check the network, or the proxy in HTTPS_PROXY"
        ),
        "DO NOT MATCH THE HASHES": "A download is not what requirements.lock names: do not trust this network",
    }
    advice = [f"{advice}, then type the same again." for cause, advice in causes.items() if re.search(cause, text)]
    return "\n".join([*(f"  {line.rstrip()}" for line in said[-5:]), *advice[:1]])


def clean() -> None:
    """Remove what the project made in its own folder; landed files of other hands stay, and so does LAKEHOUSE."""
    for name in MADE:
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for room in ("data_generator", "helpers", "notebooks", "tests"):
        for made in [*(ROOT / room).rglob("__pycache__"), *(ROOT / room).rglob(".ipynb_checkpoints")]:
            shutil.rmtree(made, ignore_errors=True)
    kept = clean_lakehouse(ROOT / "lakehouse")
    if kept:
        print(f"clean: kept {len(kept)} landed files that the generator did not make, such as {kept[0]}")
    if elsewhere := os.environ.get("LAKEHOUSE"):
        print(f"clean: kept LAKEHOUSE={elsewhere}; delete it yourself if you no longer need it")


def clean_lakehouse(lakehouse: Path) -> list[Path]:
    """Empty `./lakehouse` except for landed files that the manifest does not list."""
    manifest = lakehouse / "Files" / "manifest" / "manifest.json"
    ours = set(json.loads(manifest.read_text())["files"]) if manifest.is_file() else set()
    landed = [
        path for zone in ("landing", "archive") for path in (lakehouse / "Files" / zone).rglob("*") if path.is_file()
    ]
    foreign = [path for path in landed if path.relative_to(lakehouse).as_posix() not in ours]
    if not foreign:
        shutil.rmtree(lakehouse, ignore_errors=True)
        return []
    for path in landed:
        if path not in foreign:
            path.unlink()
    for room in [*lakehouse.iterdir(), *(lakehouse / "Files").iterdir()]:
        if room.name not in ("Files", "landing", "archive"):
            shutil.rmtree(room, ignore_errors=True)
    return foreign


def version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


if __name__ == "__main__":
    clean() if "--clean" in sys.argv[1:] else set_up(this_python="--this-python" in sys.argv[1:])
