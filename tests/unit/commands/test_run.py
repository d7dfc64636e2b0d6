"""Signals end a run in order, and its start at once; standard output that cannot be written to is told by name."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from io import StringIO
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from millrace.api.console import Console
from millrace.commands import run
from millrace.errors import RunError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        # What started these tests may have had some ignored, as `nohup` does.
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_the_start_ends_it_at_once(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    begun, never = Event(), Event()

    def start() -> Any:
        begun.set()
        never.wait()

    def send() -> None:
        begun.wait()
        os.kill(os.getpid(), number)

    Thread(target=send).start()
    with pytest.raises(SystemExit) as left, run._StopOnSignals():
        run._opened(start, apart=True)
    never.set()
    assert left.value.code == 128 + number
    assert capfd.readouterr().err == "stopping ...\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_run_in_order_and_a_second_one_as_before(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped: list[str] = []
    signal.signal(number, lambda *_: stopped.append("at once"))
    with run._StopOnSignals() as signals:
        signals.run = SimpleNamespace(stop=lambda: stopped.append("in order"))  # type: ignore[assignment]
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert stopped == ["in order", "at once"]
    assert capfd.readouterr().err == "stopping ...\n"


def test_a_hang_up_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with run._StopOnSignals():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)


def test_what_fails_to_start_fails_here() -> None:
    def start() -> Any:
        raise RunError("no Java")

    with pytest.raises(RunError, match="no Java"):
        run._opened(start, apart=True)


class Broken(StringIO):
    """Output that cannot be written to."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code

    def flush(self) -> None:
        raise OSError(self.code, os.strerror(self.code))


@pytest.mark.parametrize(("code", "told"), [(errno.ENOSPC, "no space left"), (errno.EPIPE, "its reader has gone")])
@pytest.mark.parametrize("as_json", [False, True])
def test_results_that_cannot_be_shown_end_the_run_by_name(code: int, told: str, as_json: bool) -> None:
    console = Console(as_json=as_json, out=Broken(code), err=StringIO())
    with pytest.raises(RunError, match=f"standard output cannot be written to: {told}"):
        console.results("q", pa.table({"n": [1]}))


def test_progress_that_cannot_be_shown_ends_nothing() -> None:
    console = Console(out=StringIO(), err=Broken(errno.ENOSPC))
    console.evolution(None)
    console._status.show("7 rows")
