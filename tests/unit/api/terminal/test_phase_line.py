from __future__ import annotations

import io
import os
import pty
import re
from pathlib import Path

import pytest

from millrace.api.terminal import phase_line
from millrace.api.terminal.phase_line import PhaseLine, waiting
from tests.e2e.commands import wait_for
from tests.terminal import Terminal


def test_on_a_terminal_it_says_at_once_what_is_waited_for_and_leaves_nothing() -> None:
    terminal = Terminal(80)
    line = PhaseLine("starting Spark", terminal)
    assert terminal.lines() == ["starting Spark: 0 s"]
    line.end()
    line.end()
    assert terminal.lines() == [""]


@pytest.mark.slow
def test_the_seconds_go_on_while_nobody_calls() -> None:
    terminal = Terminal(80)
    with waiting("starting Spark", terminal):
        wait_for(lambda: terminal.lines() == ["starting Spark: 1 s"])


def test_elsewhere_a_short_wait_says_nothing() -> None:
    err = io.StringIO()
    with waiting("starting Spark", err):
        pass
    assert err.getvalue() == ""


def test_elsewhere_a_long_wait_says_so_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    err, now = io.StringIO(), [0.0]
    monkeypatch.setattr(phase_line.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(phase_line.PhaseLine, "_tick", lambda self: None)
    line = PhaseLine("starting Spark", err)
    for second in range(100):
        now[0] = float(second)
        line._show()
    assert re.findall(r"\d+", err.getvalue()) == ["1", "10", "20", "40", "80"]


def test_the_line_goes_where_standard_error_went_before_it_became_a_log(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as err, (tmp_path / "log").open("w") as log:
        kept = os.dup(err.fileno())
        line = PhaseLine("starting", err)
        os.dup2(log.fileno(), err.fileno())
        line.end()
        said = b""
        while said.count(b"\r") < 3:
            said += os.read(ours, 1000)
        os.close(kept)
    os.close(ours)
    assert said.startswith(b"\rstarting: 0 s\r")
    assert (tmp_path / "log").read_text() == ""
