"""The jars that pyspark does not ship: fetched once into the Python environment, then used without the network.

python -m helpers.jars        # fetch what is missing
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from helpers import command
from helpers.errors import JarsError

if TYPE_CHECKING:
    from jgo.maven import Artifact

log = logging.getLogger("helpers.jars")

SCALA = "2.13"
KAFKA = "3.9.2"
# The token provider of Spark 4.1.1 cannot be had from every mirror; 4.0.0 works with the connector of 4.1.1, and
# a version named here wins over the one that the connector asks for.
TOKEN_PROVIDER = "4.0.0"


def coordinates() -> dict[str, list[str]]:
    """What to fetch for `spark` and for the `broker`; pyproject.toml's pins decide Spark's and Delta's versions."""
    spark, delta = version("pyspark"), version("delta-spark")
    return {
        "spark": [
            f"io.delta:delta-spark_{spark.rpartition('.')[0]}_{SCALA}:{delta}",
            f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark}",
            f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA}:{TOKEN_PROVIDER}",
        ],
        "broker": [f"org.apache.kafka:kafka_{SCALA}:{KAFKA}", "org.slf4j:slf4j-reload4j:1.7.36"],
    }


def cache() -> Path:
    """Where jars are kept: `MCMILLAN_CACHE`, or inside the Python environment that they serve."""
    return Path(os.environ.get("MCMILLAN_CACHE") or Path(sys.prefix, "share", "mcmillan"))


def folder(name: str) -> Path:
    """The folder of one set; its name holds a digest of the coordinates, so that a new pin means a new folder."""
    return cache() / f"{name}-{hashlib.sha256(' '.join(coordinates()[name]).encode()).hexdigest()[:12]}"


def paths(name: str) -> list[Path]:
    """The jars of one set, fetched if this is the first time.

    >>> [jar.name for jar in paths("spark") if "delta-spark" in jar.name]
    ['delta-spark_4.1_2.13-4.2.0.jar']
    """
    fetch(name)
    return sorted(folder(name).glob("*.jar"))


def fetch(*names: str) -> None:
    """Bring the sets that are not in the cache, side by side, and show how far it is."""
    missing = [name for name in names if not folder(name).is_dir()]
    if not missing:
        return
    from tqdm import tqdm

    log.info("fetching the jars for %s, once, into %s", " and ".join(missing), cache())
    with ThreadPoolExecutor() as pool, tqdm(desc="jars", unit="B", unit_scale=True) as bar:
        bar.mininterval = 1 if sys.stderr.isatty() else 10
        fetched = [pool.submit(_fetch, name) for name in missing]
        while wait(fetched, timeout=0.5).not_done:
            bar.update(sum(file.stat().st_size for file in _arrived(missing)) - bar.n)
    for each in fetched:
        each.result()


def _arrived(names: list[str]) -> Iterator[Path]:
    drafts = (draft for name in names for draft in cache().glob(f".{name}-*"))
    return (file for draft in drafts for file in draft.rglob("*.*") if file.is_file())


def shipped() -> set[str]:
    """The artifacts that pyspark brings itself; a second version of one of them on the class path would be a fight."""
    found = importlib.util.find_spec("pyspark")
    assert found
    assert found.origin
    return {_artifact(jar.name) for jar in Path(found.origin).with_name("jars").glob("*.jar")}


def _artifact(jar: str) -> str:
    """`kafka-clients-3.9.1.jar` → `kafka-clients`."""
    return re.sub(r"-\d[^/]*\.jar$", "", jar)


def _fetch(name: str) -> None:
    # All or nothing: the set is built beside its place and moved there in one step, so a killed download leaves no
    # half jar to be found later, and of two processes that fetch at once the second finds the first one's.
    final = folder(name)
    try:
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache()) as draft:
            ready = Path(draft, "jars")
            ready.mkdir()
            for jar in _download(name, Path(draft, "repository")):
                jar.rename(ready / jar.name)
            if not final.is_dir():
                ready.rename(final)
    except OSError as error:
        if final.is_dir():
            return
        raise JarsError(
            f"the jars for {name} could not be fetched into {cache()}: {error}. "
            f"The network is needed once: check it, or the proxy in HTTPS_PROXY, and the folder, "
            f"then type `{sys.executable} -m helpers.jars`; or point MCMILLAN_CACHE to a filled folder"
        ) from error


def _download(name: str, repository: Path) -> list[Path]:
    import requests  # here, not above: with a warm cache none of these is needed, and they take a second to import
    import truststore
    from jgo.maven import MavenContext
    from jgo.parse import Coordinate

    truststore.inject_into_ssl()  # the system's certificates, so that a company's proxy is trusted as pip trusts it
    try:
        context = MavenContext(repo_cache=repository, timeout=20)
        wanted = [
            context.create_dependency(replace(Coordinate.parse(coordinate), scope="compile"))
            for coordinate in coordinates()[name]
        ]
        named, transitive = context.resolver.resolve(wanted)
        skip = shipped() if name == "spark" else set()
        artifacts = [
            dependency.artifact
            for dependency in [*named, *transitive]
            if dependency.scope in ("compile", "runtime") and _artifact(dependency.artifact.filename) not in skip
        ]
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(_whole_jar, artifacts))
    except (requests.RequestException, RuntimeError, ValueError) as error:
        raise OSError(str(error).splitlines()[0][:300]) from error


def _whole_jar(artifact: Artifact) -> Path:
    jar = artifact.resolve()
    if not zipfile.is_zipfile(jar):  # the directory of a zip is at its end: a cut-off download has none
        raise OSError(f"{artifact.filename} arrived damaged")
    return jar


def main() -> int:
    fetch(*coordinates())
    for name in coordinates():
        print(f"{name}: {len(paths(name))} jars in {folder(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
