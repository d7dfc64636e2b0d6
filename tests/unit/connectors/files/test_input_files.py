from __future__ import annotations

from pathlib import Path

import pytest

from millrace.connectors.files.input_files import list_files
from millrace.errors import RequestError
from millrace.plan.nodes.endpoints import Connector


def names(path: Path | str) -> list[str]:
    return [Path(found).name for found in listed(path)]


def listed(path: Path | str) -> list[str]:
    return list_files(Connector("csv", {"path": str(path)}), "s")


def test_a_folder_is_read_in_name_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.txt", "c", "_SUCCESS", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert names(tmp_path) == ["a.txt", "b.csv", "c"]


def test_an_empty_folder_has_no_files_yet(tmp_path: Path) -> None:
    assert names(tmp_path) == []


def test_a_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "_odd.csv").touch()
    assert names(tmp_path / "_odd.csv") == ["_odd.csv"]


def test_a_pattern_gives_what_matches_in_name_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.json"):
        (tmp_path / name).touch()
    assert names(tmp_path / "*.csv") == ["a.csv", "b.csv"]


def test_files_come_in_the_order_of_their_folders_and_names_also_where_one_begins_like_another(tmp_path: Path) -> None:
    for name in ("a/b.csv", "a-b/a.csv", "a.csv", "B.csv", "a/b-c.csv", "a/é.csv", "Z/a.csv", "a/b/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    assert listed(tmp_path / "**" / "*.csv") == [str(path) for path in sorted(tmp_path.rglob("*.csv"))]
    assert listed(tmp_path) == [str(tmp_path / "B.csv"), str(tmp_path / "a.csv")]


def test_paths_are_spelled_as_the_stream_spells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    (tmp_path / "b.csv").symlink_to(tmp_path / "in" / "a.csv")
    monkeypatch.chdir(tmp_path)
    assert (listed("."), listed("./in/"), listed("in/*")) == (["b.csv"], ["in/a.csv"], ["in/a.csv"])


def test_a_pattern_without_a_match_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='of stream "s" is a pattern without a match'):
        names(tmp_path / "*.csv")


def test_a_missing_path_is_refused_with_a_sibling_of_like_spelling(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").touch()
    with pytest.raises(RequestError, match=r'order\.csv" of stream "s" is not there') as raised:
        names(tmp_path / "order.csv")
    assert f'There is "{tmp_path / "orders.csv"}"' in raised.value.hint


def test_a_missing_folder_on_the_way_is_the_one_compared(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with pytest.raises(RequestError) as raised:
        names(tmp_path / "event" / "a.csv")
    assert str(tmp_path / "events") in raised.value.hint


def test_a_connector_without_a_path_is_refused() -> None:
    with pytest.raises(RequestError, match='stream "s" does not say where its files are'):
        list_files(Connector("csv"), "s")
