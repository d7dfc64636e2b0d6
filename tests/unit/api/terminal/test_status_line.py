from __future__ import annotations

import io

import pytest

from millrace.api.terminal import status_line
from millrace.api.terminal.status_line import StatusLine, terminal_width
from tests.terminal import Terminal


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal_the_line_never_wraps(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "terminal_width", lambda stream: columns)
    terminal = Terminal(columns)
    line = StatusLine(terminal)
    for count in (500, 90, 3):
        line.show("x" * count)
        assert len(terminal.lines()) == 1
    assert terminal.lines() == ["xxx"]
    line.clear()
    assert terminal.lines() == [""]


def test_elsewhere_lines_are_whole_and_sparse() -> None:
    err = io.StringIO()
    line = StatusLine(err)
    assert line.due
    line.show("x" * 500)
    assert err.getvalue() == "x" * 500 + "\n" and not line.due


def test_what_is_no_terminal_has_eighty_columns() -> None:
    assert terminal_width(io.StringIO()) == 80
