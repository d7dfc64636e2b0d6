"""Who follows the latest answers of a run from outside sees the last of them, however it ends."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

import millrace as mr
import millrace.commands.latest
from millrace.commands.latest import PlainAnswers, follow
from millrace.errors import MillraceError, RequestError, RunError
from tests.unit.hosts.fed import row


class Follower:
    """One who follows in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.rows: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.begun = Event()
        self._thread = Thread(target=self._follow, args=(folder,), daemon=True)
        self._thread.start()

    def _follow(self, folder: Path) -> None:
        try:
            follow(folder, "prices", self._show, 10)
        except MillraceError as error:
            self.error = error

    def _show(self, found: PlainAnswers) -> None:
        self.rows += found.data()
        self.begun.set()

    def all(self) -> list[dict[str, Any]]:
        """What was shown until the end."""
        self._thread.join(300)
        assert not self._thread.is_alive() and self.error is None
        return self.rows


def running(source: Any, **options: Any) -> mr.Handle:
    net = mr.Network()
    net.stream("ticks", "symbol STRING, price DOUBLE, ts TIMESTAMP", time="ts", update_key="symbol", source=source)
    return net.sql("CREATE QUERY prices AS SELECT symbol, price FROM ticks").run(on="local", background=True, **options)


def tick(second: int, symbol: str, price: float) -> dict[str, Any]:
    return row(second, symbol=symbol, price=price)


def shown(symbol: str, price: float) -> dict[str, Any]:
    return {"symbol": symbol, "price": price}


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Event:
    """The next look comes after the run has ended, for that is when the test sets this."""
    event = Event()
    monkeypatch.setattr(millrace.commands.latest, "time", SimpleNamespace(sleep=lambda seconds: event.wait(300)))
    return event


@pytest.mark.parametrize("kept", [False, True])
def test_who_follows_sees_the_last_answers_of_a_run_with_and_without_a_checkpoint(
    tmp_path: Path, kept: bool, ended: Event
) -> None:
    ticks, state = mr.Pushed(), tmp_path / "state"
    handle = running(ticks, control=tmp_path / "control", **({"checkpoint": state} if kept else {}))
    ticks.push([tick(1, "A", 7.0)])
    handle.latest("prices", refresh=True)
    follower = Follower(tmp_path / "control")
    assert follower.begun.wait(300)
    ticks.push([tick(2, "A", 8.0), tick(2, "B", 9.0)])
    handle.latest("prices", refresh=True)
    handle.stop()
    ended.set()
    assert follower.all() == [shown("A", 7.0), shown("A", 8.0), shown("B", 9.0)]
    assert not [*(tmp_path / "control").glob("reply-*"), *(tmp_path / "control").glob("last-*")]


def test_who_follows_sees_the_last_answers_of_a_run_that_fails(tmp_path: Path, ended: Event) -> None:
    ticks = mr.Pushed()
    handle = running(ticks, control=tmp_path / "control")
    follower = Follower(tmp_path / "control")
    assert follower.begun.wait(300)
    ticks.push([tick(1, "A", 7.0)])
    handle.latest("prices", refresh=True)
    ticks.push([{"symbol": "A", "price": "much", "ts": "1970-01-01 00:00:02"}])
    with pytest.raises(RunError, match="do not fit"):
        handle.wait(300)
    ended.set()
    assert follower.all() == [shown("A", 7.0)]


def test_a_run_that_ends_while_it_is_asked_ends_those_who_follow_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = mr.Pushed()
    handle = running(ticks, control=tmp_path / "control")
    real, asked = millrace.commands.latest.ask, list[str]()

    def ask(folder: Path, text: str, timeout: float) -> Any:
        asked.append(text)
        if len(asked) == 2:
            ticks.push([tick(1, "A", 7.0)])
            handle.latest("prices", refresh=True)
            handle.stop()
        return real(folder, text, timeout)

    monkeypatch.setattr(millrace.commands.latest, "ask", ask)
    assert Follower(tmp_path / "control").all() == [shown("A", 7.0)]
    assert len(asked) == 2


def test_who_follows_a_run_does_not_go_on_with_the_next_one(tmp_path: Path, ended: Event) -> None:
    handle = running(mr.Pushed(), control=tmp_path / "control")
    follower = Follower(tmp_path / "control")
    assert follower.begun.wait(300)
    handle.stop()
    ticks = mr.Pushed()
    handle = running(ticks, control=tmp_path / "control")
    ticks.push([tick(1, "A", 7.0)])
    handle.latest("prices", refresh=True)
    ended.set()
    assert follower.all() == []
    handle.stop()


def test_where_nobody_listens_nothing_can_be_followed(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no run listens"):
        follow(tmp_path, "prices", lambda found: None, 1)
    assert not list(tmp_path.iterdir())
