"""A folder through which other processes of the same user send requests to a run on the same machine.

Rules:
- A run holds the folder's lock as long as it lives, however it dies: a free lock means that no run listens.
- A request is a file written whole. The run takes it by removing it, and replies with a file of the same number.
- A request to read may also be left for the end: a run that ends, and is not killed, replies to it before it stops
  listening. So a client that asks now and then misses no answer.
- A run that begins removes what a dead one left; clients that waited for that one are told that it has ended.
- Only the owner can write to the folder: a user who can write to it commands the run.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from millrace.errors import MillraceError, Place, RequestError, RunError
from millrace.hosts.checkpoint.durable_files import lock, make_folder, replace_file
from millrace.hosts.control.read_requests import is_read_request
from millrace.hosts.control.replies import Reply

_LOCK, _LISTENING = "lock", "listening"
_REQUEST, _LAST, _REPLY = "request-", "last-", "reply-"
_LOOK = 0.01
"""Seconds between two looks for a reply."""


class RequestFolder:
    """The run's end of a control folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = _own_folder(folder)
        self._lock = lock(
            folder / _LOCK,
            RequestError(
                f'another run listens in "{folder}"',
                hint="Stop it first, or give this run another --control and --checkpoint.",
            ),
        )
        self._carry_out: Callable[[str], Sequence[Reply]] | None = None
        (folder / _LISTENING).unlink(missing_ok=True)
        for begin in (_REQUEST, _LAST, _REPLY):
            for path in (*folder.glob(f"{begin}*"), *folder.glob(f".{begin}*")):
                path.unlink(missing_ok=True)
        replace_file(folder / _LISTENING, uuid4().hex)

    def serve(self, carry_out: Callable[[str], Sequence[Reply]]) -> None:
        """Carry out and answer the requests that are there."""
        self._carry_out = carry_out
        for number, text in self._taken(_REQUEST):
            self._answer(number, text, carry_out)

    def _answer(self, number: str, text: str, carry_out: Callable[[str], Sequence[Reply]]) -> None:
        try:
            answer: dict[str, Any] = {"answers": [each.data() for each in carry_out(text)]}
        except MillraceError as error:
            answer = {"error": _error_data(error)}
        replace_file(self.folder / f"{_REPLY}{number}", json.dumps(answer))

    def _taken(self, kind: str) -> Iterator[tuple[str, str]]:
        for path in sorted(self.folder.glob(f"{kind}*")):
            try:
                text = path.read_text(encoding="utf-8")
                path.unlink()
            except FileNotFoundError:
                # Taken back by the client.
                continue
            yield path.name.removeprefix(kind), text

    def close(self) -> None:
        """Reply to what was left for the end, and stop listening."""
        if self._carry_out is not None:
            for number, text in self._taken(_LAST):
                if is_read_request(text):
                    self._answer(number, text, self._carry_out)
        (self.folder / _LISTENING).unlink(missing_ok=True)
        self._lock.close()


class LastRequest:
    """A request to read that a run answers when it ends; it is written anew whenever another one is meant."""

    def __init__(self, folder: Path) -> None:
        self._folder = _asked_in(folder)
        self._number = _new_number()

    def write(self, text: str) -> None:
        """Say what is asked for."""
        with suppress(FileNotFoundError):
            # Cleared away by a run that has just begun: the one that was meant has ended.
            replace_file(self._folder / f"{_LAST}{self._number}", text)

    def answers(self) -> list[dict[str, Any]]:
        """What the run has answered when it ended; nothing if it was killed, or refused it."""
        try:
            return list(json.loads((self._folder / f"{_REPLY}{self._number}").read_text()).get("answers", ()))
        except FileNotFoundError:
            return []

    def __enter__(self) -> LastRequest:
        return self

    def __exit__(self, *_: object) -> None:
        for kind in (_LAST, _REPLY):
            (self._folder / f"{kind}{self._number}").unlink(missing_ok=True)


def listens(folder: Path) -> bool:
    """True if a run listens in a folder."""
    return listening(folder) is not None


def listening(folder: Path) -> str | None:
    """The name of the run that listens in a folder: another run has another one; None if there is none."""
    return _listening(_asked_in(folder))


def ask(folder: Path, text: str, timeout: float) -> list[dict[str, Any]]:
    """The answers of the run that listens in a folder; raises its refusal, or that there is none."""
    folder = _asked_in(folder)
    run = _listening(folder)
    if run is None:
        raise RequestError(
            f'no run listens in "{folder}"',
            hint="Name the folder that a run was started with, by --control or --checkpoint.",
        )
    number = _new_number()
    request, reply = folder / f"{_REQUEST}{number}", folder / f"{_REPLY}{number}"
    try:
        replace_file(request, text)
    except FileNotFoundError:
        # Cleared away by a run that has just begun: the one that listened is no more.
        raise _ended(folder) from None
    _wait(reply, run, request, timeout)
    answer = json.loads(reply.read_text())
    reply.unlink()
    if "error" in answer:
        raise _error(answer["error"])
    return list(answer["answers"])


def _new_number() -> str:
    return f"{time.time_ns():020d}-{uuid4().hex}"


def _asked_in(folder: Path) -> Path:
    """The control folder itself, or the one in a checkpoint."""
    return folder / "control" if (folder / "control" / _LOCK).exists() else folder


def _wait(reply: Path, run: str, request: Path, timeout: float) -> None:
    """Return when the run has replied; raises when it has ended, or let too much time pass."""
    until = time.monotonic() + timeout
    while not reply.exists():
        if _listening(reply.parent) != run and not reply.exists():
            raise _ended(reply.parent)
        if time.monotonic() > until:
            raise _too_late(reply.parent, request, timeout)
        time.sleep(_LOOK)


def _ended(folder: Path) -> RunError:
    return RunError(
        f'the run in "{folder}" ended before it answered',
        hint="Start it again and ask SHOW QUERIES: the change was made whole, or not at all.",
    )


def _too_late(folder: Path, request: Path, timeout: float) -> RunError:
    try:
        request.unlink()
    except FileNotFoundError:
        hint = "It has taken the request and may still carry it out: ask SHOW QUERIES."
    else:
        hint = "The request was taken back. The run may be busy: allow more time with --timeout."
    return RunError(f'the run in "{folder}" gave no answer within {timeout:g} seconds', hint=hint)


def _own_folder(folder: Path) -> Path:
    """The folder, made for its owner alone; refuses one that others can write to."""
    if not folder.exists():
        make_folder(folder.parent, "the folder of the control folder")
        make_folder(folder, "the control folder").chmod(0o700)
    status = make_folder(folder, "the control folder").stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise RequestError(
            f'the control folder "{folder}" can be written to by others',
            hint="Any user who can write to it commands the run: name a new folder, or make this one yours alone.",
        )
    return folder


def _listening(folder: Path) -> str | None:
    """The name of the run that listens in a folder; None when there is none."""
    try:
        run = (folder / _LISTENING).read_text()
        held = (folder / _LOCK).open()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise RequestError(
            f'the control folder "{folder}" belongs to another user', hint="Ask as the user who started the run."
        ) from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return run
    return None


def _error_data(error: MillraceError) -> dict[str, Any]:
    place = None if error.place is None else asdict(error.place)
    return {"fact": error.fact, "hint": error.hint, "place": place, "exit_code": error.exit_code}


def _error(data: dict[str, Any]) -> MillraceError:
    kind = RequestError if data["exit_code"] == RequestError.exit_code else RunError
    return kind(data["fact"], hint=data["hint"], place=None if data["place"] is None else Place(**data["place"]))
