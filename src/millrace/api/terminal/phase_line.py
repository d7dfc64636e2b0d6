"""What a command waits for, and for how long already: shown by a thread, so that the wait itself need not say anything.

Rules:
- On a terminal the line is rewritten every second. Elsewhere a line is written after a second, after ten, and then ever
  more rarely.
- While Spark starts, standard error is its log: the line goes where standard error went before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TextIO

from millrace.api.terminal.status_line import StatusLine, copied

_SOONEST = 1.0
"""Seconds before a line is written where lines cannot be rewritten."""
_SPARSE = 10.0
"""Seconds before the next one; each that follows takes twice as long."""


class PhaseLine:
    """The line of one wait, shown from now on until `end`."""

    def __init__(self, text: str, err: TextIO) -> None:
        self.text = text
        self._own = copied(err)
        self._status = StatusLine(self._own or err)
        self._began = time.monotonic()
        self._due = 0.0 if self._status.live else _SOONEST
        self._lock = Lock()
        self._over = Event()
        self._show()
        Thread(target=self._tick, name="phase line", daemon=True).start()

    def end(self) -> None:
        """Remove the line; it may be called again."""
        with self._lock:
            if not self._over.is_set():
                self._over.set()
                self._status.clear()
                if self._own is not None:
                    self._own.close()

    def _tick(self) -> None:
        while not self._over.wait(0.2):
            self._show()

    def _show(self) -> None:
        with self._lock:
            waited = time.monotonic() - self._began
            if not self._over.is_set() and waited >= self._due:
                self._due = self._due + 1.0 if self._status.live else max(_SPARSE, 2 * self._due)
                self._status.show(f"{self.text}: {waited:.0f} s")


@contextmanager
def waiting(text: str, err: TextIO) -> Iterator[None]:
    """A block that takes long: the terminal says so while it lasts."""
    line = PhaseLine(text, err)
    try:
        yield
    finally:
        line.end()
