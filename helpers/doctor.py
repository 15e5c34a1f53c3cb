"""Looks at this machine as the workshop will, and says for each thing that is wrong what to type.

python -m helpers.doctor
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from helpers import command, jars, java, lakehouse
from helpers.errors import WorkshopError

OLDEST, NEWEST = (3, 11), (3, 14)
NEEDED_DISK_GB = 3
NEEDED_MEMORY_GB = 4


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` is empty when it is well."""

    what: str
    found: str
    advice: str = ""


def python() -> Finding:
    """The interpreter's version."""
    found = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro} in {sys.prefix}"
    well = OLDEST <= sys.version_info[:2] <= NEWEST
    return Finding("Python", found, "" if well else "install Python 3.11 to 3.14, then: make run PYTHON=python3.12")


def java_found() -> Finding:
    """The Java that would be used."""
    try:
        found = java.find()
    except WorkshopError as error:
        return Finding("Java", "none that Spark can use", str(error))
    return Finding("Java", f"{java.version(found)} at {found}")


def versions() -> Finding:
    """Whether what is installed is what requirements.lock names."""
    lock = lakehouse.PROJECT / "requirements.lock"
    if not lock.is_file():
        return Finding("versions", "no requirements.lock beside the package; nothing to compare")
    pins = dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)(?= \\)", lock.read_text(), re.MULTILINE))
    wrong = [f"{name} {_installed(name)} (locked {pin})" for name, pin in pins.items() if _installed(name) != pin]
    if len(wrong) == len(pins):
        return Finding("versions", "nothing is installed yet", "make run")
    if not wrong:
        return Finding("versions", f"{len(pins)} packages as locked")
    return Finding("versions", f"{len(wrong)} differ: {', '.join(wrong[:3])}", "make clean, then make run")


def jars_found() -> Finding:
    """Whether Spark and the broker can start with the network off."""
    try:
        missing = [name for name in jars.coordinates() if not jars.folder(name).is_dir()]
    except importlib.metadata.PackageNotFoundError:
        return Finding("jars", "pyspark or delta-spark is not installed, so their versions are unknown", "make run")
    if missing:
        return Finding("jars", f"not fetched for {' and '.join(missing)}", f"{sys.executable} -m helpers.jars")
    return Finding("jars", f"complete in {jars.cache()}")


def disk() -> Finding:
    """Room for `.venv` and a lakehouse."""
    place = lakehouse.root()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 1e9
    if not os.access(place, os.W_OK):
        return Finding("disk", f"{place} cannot be written", "export LAKEHOUSE=/a/folder/of/yours")
    return Finding(
        "disk",
        f"{free:.0f} GB free at {place}",
        "" if free >= NEEDED_DISK_GB else f"free {NEEDED_DISK_GB} GB, or export LAKEHOUSE=/a/folder/on/another/disk",
    )


def memory() -> Finding:
    """Room for Spark, a broker and a notebook."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return Finding("memory", f"{size:.0f} GB", "" if size >= NEEDED_MEMORY_GB else "export SPARK_DRIVER_MEMORY=1g")


def ports() -> Finding:
    """Whether a program here may listen on this machine."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding("ports", f"no port on 127.0.0.1: {error}", "allow local connections in the firewall or sandbox")
    return Finding("ports", "free ones on 127.0.0.1")


CHECKS: tuple[Callable[[], Finding], ...] = (python, java_found, versions, jars_found, disk, memory, ports)


def examine() -> Iterator[Finding]:
    """Every finding; a check that itself fails with a clear error is a finding too."""
    for check in CHECKS:
        try:
            yield check()
        except WorkshopError as error:
            yield Finding(check.__name__, "cannot be told", str(error))


def main() -> int:
    findings = list(examine())
    for finding in findings:
        print(f"{'!!' if finding.advice else 'ok'}  {finding.what:<9} {finding.found}")
        if finding.advice:
            print(f"              → {finding.advice}")
    return int(any(finding.advice for finding in findings))


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(command.run(main))
