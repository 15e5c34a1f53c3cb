"""Where things lie: one folder, `Files/…` for files and `Tables/<zone>/<table>` for Delta, local or in Fabric."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

from helpers.errors import LakehouseError

PROJECT = Path(__file__).resolve().parents[1]
FABRIC = Path("/lakehouse/default")
NEEDED_GB = 1


def on_fabric() -> bool:
    """Whether this runs in Microsoft Fabric, which brings its own session, jars and lakehouse."""
    return importlib.util.find_spec("notebookutils") is not None


def root() -> Path:
    """The lakehouse: `LAKEHOUSE`, or Fabric's, or `lakehouse` in the project's folder, wherever it is called from.

    >>> os.environ["LAKEHOUSE"] = "/data/mcmillan"; root().as_posix()
    '/data/mcmillan'
    """
    if named := os.environ.get("LAKEHOUSE"):
        return _usable(Path(named).expanduser().absolute())
    if on_fabric():
        return FABRIC
    checkout = (PROJECT / "pyproject.toml").is_file()
    return _usable((PROJECT if checkout else Path.cwd()) / "lakehouse")


def files(*parts: str) -> Path:
    """A folder below `Files`, made if missing: `files("landing", "order")`."""
    return _made(root().joinpath("Files", *parts))


def table(name: str) -> Path:
    """The Delta folder of `zone.table`: `table("bronze.order")` is `Tables/bronze/order`."""
    zone, _, entity = name.partition(".")
    if not re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", name):
        raise LakehouseError(f"{name!r} is not a table name; it is <zone>.<table> in snake_case, such as bronze.order")
    return root() / "Tables" / zone / entity


def fresh(name: str) -> Path:
    """An empty lakehouse for one notebook, inside the default one, and from now on this process's `LAKEHOUSE`.

    >>> fresh("explore_streaming").name
    'explore_streaming'
    """
    outer = root().parents[1] if root().parent.name == "notebooks" else root()  # called before in this process
    folder = outer / "notebooks" / name
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["LAKEHOUSE"] = str(_made(folder))
    return folder


def for_spark(path: Path) -> str:
    """The path as Spark reads it: in Fabric relative to the attached lakehouse, elsewhere as it is."""
    if on_fabric() and path.is_relative_to(FABRIC):
        return path.relative_to(FABRIC).as_posix()
    return path.as_posix()


def check_space() -> None:
    """Refuse to begin on a full disk or in a folder that cannot be written."""
    folder = files()
    free = shutil.disk_usage(folder).free / 1e9
    if free < NEEDED_GB:
        raise LakehouseError(
            f"{free:.2f} GB are free where {folder} lies, {NEEDED_GB} GB are needed: "
            "free some, or set LAKEHOUSE to a folder on another disk"
        )
    if not os.access(folder, os.W_OK):
        raise LakehouseError(f"{folder} cannot be written: change its rights, or set LAKEHOUSE to another folder")


def _usable(path: Path) -> Path:
    if odd := re.findall(r"[*?\[\]{}\\]", str(path)):
        raise LakehouseError(
            f"{path} contains {' '.join(sorted(set(odd)))}, which Spark takes for a pattern: "
            "set LAKEHOUSE to another folder"
        )
    return path


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LakehouseError(
            f"{folder} cannot be made ({error.strerror}): change the rights of the folder above it, "
            "or set LAKEHOUSE to a folder that can be written"
        ) from error
    return folder
