from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import lakehouse
from helpers.errors import LakehouseError


def test_files_are_made_on_demand(lakehouse_folder: Path) -> None:
    assert not lakehouse_folder.exists()
    assert lakehouse.files("landing", "order") == lakehouse_folder / "Files" / "landing" / "order"
    assert (lakehouse_folder / "Files" / "landing" / "order").is_dir()


def test_a_table_lies_in_its_zone(lakehouse_folder: Path) -> None:
    assert lakehouse.table("bronze.order") == lakehouse_folder / "Tables" / "bronze" / "order"


@pytest.mark.parametrize("name", ["order", "bronze.", "bronze.Order", "../x.y", "bronze.order.more", "bronze/order.x"])
def test_other_table_names_are_refused(name: str) -> None:
    with pytest.raises(LakehouseError, match=r"<zone>\.<table>"):
        lakehouse.table(name)


def test_the_default_is_in_the_project_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAKEHOUSE")
    monkeypatch.chdir(tmp_path)
    assert lakehouse.root() == lakehouse.PROJECT / "lakehouse"


def test_a_fresh_lakehouse_is_empty_and_its_own(lakehouse_folder: Path) -> None:
    first = lakehouse.fresh("windows")
    lakehouse.files("landing", "order")
    assert (first, lakehouse.root()) == (lakehouse_folder / "notebooks" / "windows",) * 2
    assert lakehouse.fresh("windows") == first
    assert list(first.iterdir()) == []
    assert lakehouse.fresh("joins") == lakehouse_folder / "notebooks" / "joins"


def test_in_fabric_the_attached_lakehouse_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEHOUSE")
    monkeypatch.setattr(lakehouse, "on_fabric", lambda: True)
    assert lakehouse.root() == Path("/lakehouse/default")
    assert lakehouse.for_spark(lakehouse.table("bronze.order")) == "Tables/bronze/order"


def test_a_folder_name_that_spark_takes_for_a_pattern_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAKEHOUSE", str(tmp_path / "lake[1]"))
    with pytest.raises(LakehouseError, match="set LAKEHOUSE"):
        lakehouse.files("landing")


def test_a_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("LAKEHOUSE", str(tmp_path / "a file" / "lakehouse"))
    with pytest.raises(LakehouseError, match=r"a file.*LAKEHOUSE"):
        lakehouse.files("landing")


def test_a_full_disk_is_noticed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000_000))
    with pytest.raises(LakehouseError, match=r"0\.01 GB are free"):
        lakehouse.check_space()


def test_a_folder_that_cannot_be_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lakehouse.os, "access", lambda *_: False)
    with pytest.raises(LakehouseError, match="cannot be written"):
        lakehouse.check_space()
