"""Every error raised on purpose.

An error is a lower-case fact with names in double quotes, and a `hint` that says what to do.
`exit_code` follows the command line: 2 when the request was wrong, 1 when a run failed.
"""

from __future__ import annotations

import queue
from collections.abc import Collection, Iterable
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


def unknown_query(query: str, known: Collection[str]) -> UnknownQuery:
    """The error for a query that does not exist; `known` are the names of those that do.

    >>> print(unknown_query("prises", ["prices"]))
    there is no query "prises"
    hint: Did you mean "prices"? The queries are prices.
    """
    hint = f"{did_you_mean(query, known)}The queries are {listed(known)}." if known else "There are no queries."
    return UnknownQuery(f'there is no query "{query}"', hint=hint)


# Hints


def listed(names: Iterable[str]) -> str:
    """Names as a comma-separated list."""
    return ", ".join(names)


def did_you_mean(name: str, known: Iterable[str], near: float = 0.6) -> str:
    """A sentence that suggests the nearest of the known names, and a space; nothing if none is near.

    >>> did_you_mean("bsf", ["bfs", "dfs"])
    'Did you mean "bfs"? '
    """
    by_folded = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_folded, n=1, cutoff=near)
    return f'Did you mean "{by_folded[found[0]]}"? ' if found else ""
