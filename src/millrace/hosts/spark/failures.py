"""Errors of Millrace on their way through Spark: raised in a worker process, found again in the driver.

Rules:
- Spark passes a worker's exception on as text. `carrying` adds a marker with the whole error in it.
- `unwrap` reads the marker; without one it keeps the last line of the worker's traceback.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from millrace.errors import MillraceError, Place, RunError, machine_fault, without_secrets

_MARKER = re.compile(r"millrace-error:([A-Za-z0-9+/=]+);")
_LOST = (
    "Python worker exited",
    "Python worker failed to connect",
    "Stream closed",
    "EOFException",
    "Connection reset",
    "Broken pipe",
)
"""What Java says of a process that has died, when it reads from it or writes to it."""
_ERRORS = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EROFS)}
_MACHINE = re.compile(rf"java\.(?:io|nio)\.[^\n]*({'|'.join(_ERRORS)})")
"""Java's trouble with the files of the checkpoint."""
_ATTEMPTS = 3
"""How often a batch is tried again if a process of Spark's was lost."""
_TRACEBACK = "Traceback (most recent call last):"


class CarriedError(Exception):
    """An error of ours on its way from a worker process to the driver, as text."""

    def __init__(self, error: MillraceError) -> None:
        super().__init__(f"{error}\nmillrace-error:{_encode(error)};")


@contextmanager
def carrying() -> Iterator[None]:
    """A block of worker code whose errors of ours reach the driver whole."""
    try:
        yield
    except MillraceError as error:
        raise CarriedError(error) from _shown(error)
    except OSError as error:
        if error.filename is None:
            raise
        raise CarriedError(machine_fault(error)) from error


def _shown(error: Exception) -> Exception | None:
    """The error, whose traceback goes to Spark's log; none if a secret is in it."""
    text = "".join(traceback.format_exception(error))
    return error if without_secrets(text) == text else None


def unwrap(error: BaseException, log_file: Path | None = None) -> MillraceError:
    """The error of ours behind what Spark raised, or a `RunError` with the last line of the worker's traceback."""
    if isinstance(error, MillraceError):
        return error
    text = _text(error)
    if found := _MARKER.search(text):
        return _decode(found.group(1))
    where = f'in "{log_file}"' if log_file else "in Spark's log"
    if isinstance(error, ConnectionError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)):
        return RunError(
            "Spark's Java process has ended",
            hint=f"The reason may be {where}. With a checkpoint, start again: the run goes on where it was.",
        )
    if found := _MACHINE.search(text):
        reason = OSError(_ERRORS[found[1]], found[1])
        return machine_fault(reason, log_file.parent if log_file else None)
    return RunError(f"the run failed: {_last_words(text)}", hint=f"The whole traceback is {where}.")


def is_lost_process(error: BaseException) -> bool:
    """True if a Python process in which Spark plans or commits has died, without an error of ours."""
    text = _text(error)
    return _MARKER.search(text) is None and any(words in text for words in _LOST)


class LostProcesses:
    """The processes of Spark's that were lost of late: how often a batch is tried again.

    Spark tries tasks again itself, but not what it plans or commits.
    """

    def __init__(self) -> None:
        self._batches: list[int] = []

    def may_go_on(self, error: BaseException, batch: int) -> bool:
        """True if such a process was lost after this batch; not if that goes on without any progress."""
        self._batches = [each for each in self._batches if each == batch] + [batch]
        return is_lost_process(error) and len(self._batches) <= _ATTEMPTS


def _encode(error: MillraceError) -> str:
    place = asdict(error.place) if error.place else None
    record = {"type": type(error).__name__, "fact": error.fact, "hint": error.hint, "place": place}
    return base64.b64encode(json.dumps(record).encode()).decode()


def _decode(marker: str) -> MillraceError:
    record: dict[str, Any] = json.loads(base64.b64decode(marker))
    kinds = {kind.__name__: kind for kind in _kinds(MillraceError)}
    place = Place(**record["place"]) if record["place"] else None
    return kinds.get(record["type"], RunError)(record["fact"], hint=record["hint"], place=place)


def _kinds(kind: type[MillraceError]) -> Iterator[type[MillraceError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _text(error: BaseException) -> str:
    """All that is known of the error: its message, then the Java side's stack."""
    parts = [str(error), str(getattr(error, "_stackTrace", "") or "")]
    if error.__cause__ is not None:
        parts.append(_text(error.__cause__))
    return "\n".join(parts)


def _last_words(text: str) -> str:
    """The line that names the exception of the last traceback, or the first line of all."""
    tail = text.rpartition(_TRACEBACK)[2]
    lines = [line for line in tail.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    first = lines[0].strip() if lines else "no reason was given"
    return first.rpartition("terminated with exception: ")[2][:500]
