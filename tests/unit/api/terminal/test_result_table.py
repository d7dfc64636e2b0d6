from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.api import console
from millrace.api.console import Console
from millrace.api.terminal.result_table import _fitting, text_width
from tests.terminal import Terminal


def shown(width: int, *tables: pa.Table, monkeypatch: pytest.MonkeyPatch, queries: str = "") -> Terminal:
    """A terminal after these results of queries of one letter each."""
    monkeypatch.setattr(console, "terminal_width", lambda stream: width)
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(width)
    made = Console(out=terminal, err=Terminal(width))
    for query, table in zip(queries or "q" * len(tables), tables, strict=True):
        made.results(query, table)
    return terminal


def test_numbers_stand_right_text_left_and_columns_below_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"city": ["Zürich", "東京", None], "n": [1, 1000, 20]})
    terminal = shown(80, table, monkeypatch=monkeypatch)
    assert terminal.lines() == ["# q", "city       n", "Zürich     1", "東京    1000", "NULL      20", ""]


def test_the_head_is_written_again_when_a_column_grows_or_another_query_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = pa.table({"k": ["a"]}), pa.table({"k": ["a longer one"]})
    one = shown(80, short, short, long, short, monkeypatch=monkeypatch)
    assert one.lines() == ["# q", "k", "a", "a", "# q", "k", "a longer one", "a", ""]
    two = shown(80, short, short, short, monkeypatch=monkeypatch, queries="aba")
    assert two.lines() == ["# a", "k", "a", "# b", "k", "a", "# a", "k", "a", ""]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"column_{at}": ["x" * at, "y"] for at in range(0, 300, 7)})
    terminal = shown(width, table, monkeypatch=monkeypatch)
    assert len(terminal.lines()) == 5, "title, names, two rows, and where the next line begins"
    assert "more columns do not fit" in terminal.lines()[0]
    assert "…" in terminal.lines()[2]


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 20)), min_size=1, max_size=12), st.integers(30, 200))
def test_columns_are_cut_only_if_they_must_be_and_the_widest_first(drawn: list[tuple[int, int]], width: int) -> None:
    wanted, least = [max(pair) for pair in drawn], [low for _, low in drawn]
    widths = _fitting(wanted, least, width)
    assert sum(widths) + 2 * (len(widths) - 1) <= width
    assert all(each >= low for each, low in zip(widths, least, strict=False))
    if sum(wanted) + 2 * (len(wanted) - 1) <= width:
        assert widths == wanted
    cut = {each for each, want, low in zip(widths, wanted, least, strict=False) if low < each < want}
    assert len(cut) <= 1


def test_numbers_and_times_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([0], pa.timestamp("us", tz="UTC"))
    table = pa.table(
        {"a_long_name_of_a_time": times, "mean": [0.9424460431654677], "text": ["x" * 40], "n": [1234567890]}
    )
    terminal = shown(48, table, monkeypatch=monkeypatch)
    assert terminal.lines()[:3] == [
        "# q (1 more column does not fit)",
        "a_long_name_of_a_t…      mean  text",
        "1970-01-01 00:00:00  0.942446  xxxxxxxxxxxxxxxx…",
    ]


def test_a_pipe_gets_what_scripts_read(capsys: pytest.CaptureFixture[str]) -> None:
    Console().results("q", pa.table({"k": ["a", None], "n": [1, 22]}))
    assert capsys.readouterr().out == "# q\nk\tn\na\t1\nNULL\t22\n"


@pytest.mark.parametrize(
    ("name", "value", "coloured"), [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("TERM", "xterm", True)]
)
def test_colours_are_shown_unless_they_are_not_wanted(
    name: str, value: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    terminal = Terminal(80)
    Console(out=terminal, err=Terminal(80)).results("q", pa.table({"k": ["a"]}))
    assert ("\x1b[" in terminal.getvalue()) is coloured
    assert terminal.lines() == ["# q", "k", "a", ""]


def test_a_character_may_take_two_columns_or_none() -> None:
    assert [text_width(each) for each in ("abc", "é", "é", "東")] == [3, 1, 1, 2]
