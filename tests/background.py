"""A run at work in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Protocol, TypeVar


class Stoppable(Protocol):
    """A run that another thread can stop."""

    def run(self) -> object: ...

    def stop(self) -> None: ...


Run = TypeVar("Run", bound=Stoppable)


@contextmanager
def running(run: Run, seconds: float = 300) -> Iterator[Run]:
    """A run at work; in the end it is stopped, and must have ended in this time and without an error."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run.run()
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        yield run
    finally:
        run.stop()
        thread.join(seconds)
    assert not failed and not thread.is_alive(), failed
