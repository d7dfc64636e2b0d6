"""`millrace run --watch`: the file of queries is checked at every save, and run again.

Rules:
- A file with a mistake changes nothing: the mistake is shown, and the old run goes on.
- With a checkpoint what the old run would do to it is tried first; the new run then resumes from it.
- A save is a new text that stays the same for a moment: editors write in pieces, or rename.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from millrace.errors import MillraceError
from millrace.hosts.host_run import HostRun

_LOOK, _CALM = 0.2, 0.1
"""Seconds between two looks at the file, and for which a new text must stay the same."""


class WatchedFile:
    """A file whose saves are noticed; `accept` raises what is wrong with the present text."""

    def __init__(self, file: Path, accept: Callable[[], None]) -> None:
        self.file = file
        self.saved = False
        """True if a text without a mistake was saved since the last run began."""
        self._accept = accept
        self._seen = self._text()

    @contextmanager
    def attending(self, run: HostRun) -> Iterator[None]:
        """A block in which a good save stops the run."""
        over = Event()

        def look() -> None:
            while not over.wait(_LOOK):
                if self.look():
                    _say(f"{self.file} was saved: running it again")
                    run.stop()
                    return

        thread = Thread(target=look, name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def wait(self) -> None:
        """Wait for a good save."""
        _say(f"waiting until {self.file} is saved; Ctrl-C ends")
        while not self.look():
            time.sleep(_LOOK)

    def look(self) -> bool:
        """True if a text without a mistake has been saved since the last look; a mistake is shown."""
        text = self._text()
        if not text or text == self._seen:
            return False
        time.sleep(_CALM)
        if self._text() != text:
            return False
        self._seen = text
        try:
            self._accept()
        except MillraceError as error:
            self.show(error)
            return False
        self.saved = True
        return True

    def show(self, error: MillraceError) -> None:
        """Show a mistake."""
        _say(f"millrace: {error}")

    def _text(self) -> bytes:
        with suppress(OSError):
            return self.file.read_bytes()
        return b""


def run_again(watched: WatchedFile, run_once: Callable[[], bool]) -> int:
    """Run the file, and again after every good save, until `run_once` is True: a signal has ended the run."""
    try:
        while True:
            watched.saved = False
            try:
                if run_once():
                    return 0
            except MillraceError as error:
                watched.show(error)
            if not watched.saved:
                watched.wait()
    except KeyboardInterrupt:
        return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
