"""One line on standard error that is rewritten in place on a terminal, and elsewhere written anew now and then."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

_EVERY = 5.0
"""Seconds between lines where they cannot be rewritten in place."""
_AFTER_A_NOTE = re.compile(r"(?<=[,;:]) ")
WIDTH = 80
"""Of a terminal that does not say how wide it is."""


def say(err: TextIO, text: str) -> None:
    """Write to standard error; a run does not end because nobody can read it."""
    with suppress(OSError, ValueError):
        err.write(text)
        err.flush()


def terminal_width(stream: TextIO) -> int:
    """How many columns the terminal has that a stream is shown on."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def copied(err: TextIO) -> TextIO | None:
    """Where a stream goes now, whatever becomes of its file descriptor; None if it has none."""
    with suppress(OSError, ValueError):
        return os.fdopen(os.dup(err.fileno()), "w", encoding="utf-8", errors="replace")
    return None


def fitted(text: str, width: int) -> str:
    """A text that is no wider than that; what is cut off is marked.

    >>> fitted("a long line", 8)
    'a long …'
    """
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def folded(lines: Iterable[str], stream: TextIO, deeper: int = 4) -> list[str]:
    """Lines of notes, parted where a terminal ends; what continues a line stands so much deeper.

    For what is no terminal they stay as they are.
    """
    if not stream.isatty():
        return list(lines)
    width = terminal_width(stream)
    return [part for line in lines for part in parted(line, width, deeper)]


def parted(line: str, width: int, deeper: int = 4) -> list[str]:
    """A line of notes in as many lines as it needs, parted after commas, semicolons and colons.

    >>> parted("  s: 410 rows, 4 late, up to noon", 24)
    ['  s: 410 rows, 4 late,', '    up to noon']
    """
    first, *notes = _AFTER_A_NOTE.split(line)
    lines = [first]
    for note in notes:
        if len(lines[-1]) + len(note) + 1 > width:
            lines.append(" " * deeper + note)
        else:
            lines[-1] += f" {note}"
    return lines


class StatusLine:
    """A line on standard error: rewritten in place on a terminal, elsewhere written anew every few seconds.

    `shown` is when it was last written, on the monotonic clock.
    """

    def __init__(self, err: TextIO, shown: float = 0.0) -> None:
        self.err = err
        self.live = err.isatty()
        """True if it is rewritten in place."""
        self._shown = shown
        self._width = 0

    @property
    def due(self) -> bool:
        """True if it is time to show the line again."""
        return self.live or time.monotonic() - self._shown >= _EVERY

    def show(self, text: str) -> None:
        """Write the line."""
        self._shown = time.monotonic()
        if not self.live:
            say(self.err, f"{text}\n")
            return
        # A character in the last column would wrap the line on some terminals.
        text = fitted(text, terminal_width(self.err) - 1)
        say(self.err, f"\r{text:<{self._width}}")
        self._width = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            say(self.err, f"\r{'':<{self._width}}\r")
            self._width = 0
