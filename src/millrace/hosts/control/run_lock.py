"""The lock of what a run works on: other threads look at it only while it stands still.

Rules:
- A run holds the lock while it works. It lets go of it where it waits: for rows of a feed, for the clock, for who takes
  its results and for the disk.
- Between two steps it lets go for threads that want to look, and goes on when one of them has: a run that is busy is
  neither looked at in the midst of a step, nor are those who look kept waiting for the end of its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock

_MOST = 1.0
"""Seconds after which a run no longer waits for a look to begin: its thread may have been interrupted."""


class RunLock:
    """Held by a run while it works, and by a thread while it looks; the same thread may take it again."""

    def __init__(self) -> None:
        self._lock = Condition(RLock())
        self._looking: set[object] = set()
        """One mark for each look that is under way, or waits."""
        self._depth = 0
        """How often the run holds it now."""

    @contextmanager
    def look(self) -> Iterator[None]:
        """Look at the run while it stands still."""
        mark = object()
        self._looking.add(mark)
        try:
            with self._lock:
                try:
                    yield
                finally:
                    self._looking.discard(mark)
                    self._lock.notify()
        finally:
            # It may have been interrupted while it waited.
            self._looking.discard(mark)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work, or change what others look at; only the run's own thread does."""
        with self._lock:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def pause(self) -> None:
        """Let go for a thread that wants to look, if there is one."""
        if self._looking:
            self._lock.wait(_MOST)

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Let go while the run waits for something; before it has begun there is nothing to let go."""
        depth = self._depth
        for _ in range(depth):
            self._lock.release()
        try:
            yield
        finally:
            for _ in range(depth):
                self._lock.acquire()
