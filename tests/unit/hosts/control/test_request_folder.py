"""The folder through which other processes ask a run."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from millrace.errors import Place, QueryError, RequestError, RunError
from millrace.hosts.control.replies import QueryStart, Reply
from millrace.hosts.control.request_folder import RequestFolder, ask


def added(text: str) -> Sequence[Reply]:
    return [Reply("added", QueryStart(text, ("s",), at=1))]


@contextmanager
def listening(folder: Path, carry_out: Callable[[str], Sequence[Reply]] = added) -> Iterator[RequestFolder]:
    """A run that answers in a folder."""
    control, done = RequestFolder(folder), Event()

    def serve() -> None:
        while not done.wait(0.002):
            control.serve(carry_out)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield control
    finally:
        done.set()
        thread.join()
        control.close()


def test_a_request_is_answered(tmp_path: Path) -> None:
    with listening(tmp_path / "control"):
        (answer,) = ask(tmp_path / "control", "q", timeout=300)
    assert answer == {
        "did": "added",
        "query": "q",
        "since": "1970-01-01 00:00:00.000001",
        "since_microseconds": 1,
        "streams": ["s"],
        "options": {},
    }


def test_the_checkpoint_folder_leads_to_the_control_folder_in_it(tmp_path: Path) -> None:
    with listening(tmp_path / "control"):
        assert ask(tmp_path, "q", timeout=300)


def test_requests_at_once_are_each_given_their_own_answer(tmp_path: Path) -> None:
    found: dict[str, str] = {}

    def one(name: str) -> None:
        found[name] = ask(tmp_path, name, timeout=300)[0]["query"]

    with listening(tmp_path):
        threads = [Thread(target=one, args=(f"q{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {f"q{number}": f"q{number}" for number in range(8)}


def test_a_refusal_reaches_the_one_who_asked_with_its_place(tmp_path: Path) -> None:
    def refuse(text: str) -> Sequence[Reply]:
        raise QueryError("no such thing", hint="Ask for another.", place=Place(1, 3, "x", "a x"))

    with listening(tmp_path, refuse), pytest.raises(RequestError) as raised:
        ask(tmp_path, "a x", timeout=300)
    assert str(raised.value) == str(QueryError("no such thing", hint="Ask for another.", place=Place(1, 3, "x", "a x")))
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("folder", [".", "missing", "file"])
def test_where_no_run_listens_it_is_said(folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="no run listens in") as raised:
        ask(tmp_path / folder, "q", timeout=300)
    assert "--control" in raised.value.hint


def test_a_run_that_has_ended_listens_no_more(tmp_path: Path) -> None:
    with listening(tmp_path):
        pass
    with pytest.raises(RequestError, match="no run listens in"):
        ask(tmp_path, "q", timeout=300)


def test_a_run_that_is_too_busy_is_not_waited_for_without_end(tmp_path: Path) -> None:
    control = RequestFolder(tmp_path)
    with pytest.raises(RunError, match=r"gave no answer within 0\.05 seconds") as raised:
        ask(tmp_path, "q", timeout=0.05)
    assert "taken back" in raised.value.hint
    assert list(tmp_path.glob("request-*")) == []
    control.close()


def test_who_waits_for_a_run_that_dies_is_told(tmp_path: Path) -> None:
    control, errors = RequestFolder(tmp_path), list[RunError]()

    def wait() -> None:
        try:
            ask(tmp_path, "q", timeout=300)
        except RunError as error:
            errors.append(error)

    thread = Thread(target=wait)
    thread.start()
    while not list(tmp_path.glob("request-*")):
        pass
    control._lock.close()  # As the machine does for a process that is killed.
    thread.join(300)
    assert "ended before it answered" in errors[0].fact
    assert "SHOW QUERIES" in errors[0].hint


def test_what_a_dead_run_left_is_cleared_away(tmp_path: Path) -> None:
    for name in ("request-1", "reply-1", ".request-2.draft", "listening", "lock"):
        (tmp_path / name).write_text("old")
    with pytest.raises(RequestError, match="no run listens"):
        ask(tmp_path, "q", timeout=1)
    asked: list[str] = []
    control = RequestFolder(tmp_path)
    control.serve(lambda text: asked.append(text) or [])  # type: ignore[func-returns-value]
    assert asked == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["listening", "lock"]
    control.close()


def test_two_runs_do_not_listen_in_one_folder(tmp_path: Path) -> None:
    with listening(tmp_path), pytest.raises(RequestError, match="another run listens in"):
        RequestFolder(tmp_path)


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    with listening(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(RequestError, match="can be written to by others"):
        RequestFolder(tmp_path / "open")
