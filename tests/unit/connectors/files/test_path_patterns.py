"""Whether a stream would read what a sink writes: patterns, links, folders that do not exist yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.connectors.files.path_patterns import overlaps, reads

NAME = [*"part-", *["0123456789"] * 2, *".csv"]


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("d", True),
        ("d/*.csv", True),
        ("d/*", True),
        ("*/*.csv", True),
        ("**/*.csv", True),
        ("d/**", True),
        ("d/**/part-*", True),
        ("link/*.csv", True),
        ("links/*/*.csv", True),
        ("d/../d/*.csv", True),
        ("d/part-07.csv", True),
        ("d/part-[0-3]?.csv", True),
        ("d/*.json", False),
        ("d/in-*.csv", False),
        ("d/part-x*.csv", False),
        ("d/below/*.csv", False),
        ("e/*.csv", False),
        ("e", False),
        ("*.csv", False),
        (".*/*.csv", False),
    ],
)
@pytest.mark.parametrize("made", [True, False], ids=["a folder that is there", "a folder that is not made yet"])
def test_a_path_is_compared_with_the_files_that_a_sink_will_write(
    path: str, read: bool, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("e", "links", *(["d"] if made else [])):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "links" / "back").symlink_to(tmp_path)
    (tmp_path / "links" / "again").symlink_to("../d")
    for given in (path, str(tmp_path / path)):
        # A link to nothing is no folder that a pattern finds.
        assert reads(given, (tmp_path / "d").resolve(), [NAME]) == (read and (made or path != "links/*/*.csv")), given


def test_any_name_is_meant_where_spark_names_the_files(tmp_path: Path) -> None:
    assert reads(str(tmp_path / "*.orc"), tmp_path.resolve(), None)


def test_a_pattern_overlaps_names_that_differ_in_their_numbers() -> None:
    assert [overlaps(each, NAME) for each in ("*7.csv", "part-[!0-9]*", "*-??.csv", "*[", "")] == [
        True,
        False,
        True,
        False,
        False,
    ]
