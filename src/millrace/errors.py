"""Every error raised on purpose.

An error is a lower-case fact with names in double quotes, and a `hint` that says what to do.
`exit_code` follows the command line: 2 when the request was wrong, 1 when a run failed.
"""

from __future__ import annotations

import errno
import os
import queue
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text: 1-based line and column, and the text there."""

    line: int
    column: int
    text: str = ""
    source_line: str = ""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    def excerpt(self) -> str:
        """The line of the text with a caret under the place."""
        return f"  {self.source_line}\n  {' ' * (self.column - 1)}{'^' * max(1, len(self.text))}"


_hidden: set[str] = set()
"""What is never shown in an error of this process."""


def hide(secret: str) -> None:
    """Show stars for a text in all errors from now on."""
    if secret.strip():
        _hidden.add(secret)


def without_secrets(text: str) -> str:
    """A text with stars for what is hidden."""
    for secret in _hidden:
        text = text.replace(secret, "***")
    return text


class MillraceError(Exception):
    """What went wrong, what to do about it, and where."""

    exit_code = 1

    def __init__(self, fact: str, *, hint: str = "", place: Place | None = None) -> None:
        fact = without_secrets(fact)
        super().__init__(fact)
        self.fact = fact
        self.hint = hint
        self.place = place

    def __str__(self) -> str:
        lines = [self.fact if self.place is None else f"{self.place}: {self.fact}"]
        if self.place is not None and self.place.source_line:
            lines.append(self.place.excerpt())
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return without_secrets("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        # An error raised in a worker process reaches the driver with all its parts.
        return (_rebuild, (type(self), self.fact, self.hint, self.place))


def _rebuild(kind: type[MillraceError], fact: str, hint: str, place: Place | None) -> MillraceError:
    return kind(fact, hint=hint, place=place)


class RequestError(MillraceError):
    """The request is wrong; nothing has run."""

    exit_code = 2


class QueryError(RequestError):
    """The text of a query is wrong at a place."""


class UnboundedState(QueryError):
    """The state of a query would grow for ever."""


class UnknownQuery(RequestError):
    """The network has no query of this name."""


class NotYet(RequestError):
    """The request is understood, but not supported yet."""


class StreamFull(RequestError, queue.Full):
    """A pushed stream has no room for rows."""


class RunError(MillraceError):
    """A run failed; what it had committed stays."""


class MalformedRow(RunError):
    """An input row cannot be read as its stream's columns."""


class CheckpointError(RequestError):
    """A checkpoint does not fit the network that would resume from it."""


class DamagedCheckpoint(CheckpointError):
    """What a checkpoint holds is not what was written."""


class MissingFile(DamagedCheckpoint):
    """A file of a checkpoint is gone."""


def unknown_query(query: str, known: Collection[str]) -> UnknownQuery:
    """The error for a query that does not exist; `known` are the names of those that do.

    >>> print(unknown_query("prises", ["prices"]))
    there is no query "prises"
    hint: Did you mean "prices"? The queries are prices.
    """
    hint = f"{did_you_mean(query, known)}The queries are {listed(known)}." if known else "There are no queries."
    return UnknownQuery(f'there is no query "{query}"', hint=hint)


# Trouble of the machine

_GO_ON = "then start again on the same --checkpoint: the run goes on where it was."
_REMEDIES = {
    errno.ENOSPC: f"Make room on its disk, {_GO_ON}",
    errno.EDQUOT: f"Make room in the quota of this user, {_GO_ON}",
    errno.EFBIG: f"Allow larger files (ulimit -f), {_GO_ON}",
    errno.EIO: f"The disk could not read or write it: check the disk, {_GO_ON}",
    errno.EACCES: f"Allow this user to use it, and the folders above it, {_GO_ON}",
    errno.EPERM: f"Allow this user to use it, {_GO_ON}",
    errno.EROFS: f"Its disk can only be read: mount it for writing, {_GO_ON}",
    errno.ENOENT: f"It, or its folder, was removed during the run: make the folder again, {_GO_ON}",
    errno.EMFILE: f"Allow more open files (ulimit -n), {_GO_ON}",
    errno.ENFILE: f"The machine has too many open files: end some programs, {_GO_ON}",
}


def machine_fault(reason: OSError, path: object = None) -> RunError:
    """The error for a file that could not be used, with what to do about it.

    >>> print(machine_fault(OSError(errno.ENOSPC, "full", "out/part-1.csv")))
    "out/part-1.csv" cannot be used: no space left on device
    hint: Make room on its disk, then start again on the same --checkpoint: the run goes on where it was.
    """
    said = os.strerror(reason.errno) if reason.errno else str(reason)
    where = path or reason.filename
    fact = f"cannot be used: {said[:1].lower()}{said[1:]}"
    remedy = _REMEDIES.get(reason.errno or 0, f"Mend that, {_GO_ON}")
    return RunError(f'"{where}" {fact}' if where else f"a file {fact}", hint=remedy)


@contextmanager
def of_path(path: object) -> Iterator[None]:
    """A block whose trouble with a file says which one it was."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def machine_faults() -> Iterator[None]:
    """A block in which trouble with a file is an error with what to do about it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise machine_fault(error) from error


def output_fault(error: OSError) -> RunError:
    """The error for standard output that cannot be written to."""
    reason = "its reader has gone" if isinstance(error, BrokenPipeError) else str(error.strerror).lower()
    return RunError(
        f"standard output cannot be written to: {reason}",
        hint="Read all of it, or let results go to files: CREATE SINK name TO csv OPTIONS (path 'folder').",
    )


# Hints


_MOST_NAMES, _LONGEST_NAME = 30, 80


def listed(names: Iterable[str]) -> str:
    """Names as a comma-separated list; of many names the first ones, of a long name its beginning.

    >>> listed(["a", "b" * 100]) == f"a, {'b' * 80}..."
    True
    >>> listed("a" * 35).endswith("a, a and 5 more")
    True
    """
    known = list(names)
    shown = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in known[:_MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(known) - _MOST_NAMES:,} more" if len(known) > _MOST_NAMES else "")


def did_you_mean(name: str, known: Iterable[str], near: float = 0.6) -> str:
    """A sentence that suggests the nearest of the known names, and a space; nothing if none is near.

    >>> did_you_mean("bsf", ["bfs", "dfs"])
    'Did you mean "bfs"? '
    """
    by_folded = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_folded, n=1, cutoff=near)
    return f'Did you mean "{by_folded[found[0]]}"? ' if found else ""
