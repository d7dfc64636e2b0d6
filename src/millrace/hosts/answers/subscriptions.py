"""A subscription to the answers of an update query: changes as they come, for a client that reads at its own pace.

Rules:
- Each read returns the newest answer of each key that has changed since the last one: a subscription is itself an
  update queue. A slow client misses answers that were superseded meanwhile, and never reads a backlog.
- It ends when the query does, after its last answers; then it raises what made the run fail, if it did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Thread

import pyarrow as pa

from millrace.hosts.answers.answer_table import AnswerTable

Callback = Callable[[pa.Table], object]
Failure = Callable[[], BaseException | None]


class Subscription:
    """The changes of a query's answers as tables, an iterator that waits; `close` ends it from any thread.

    It begins with the answers that there are, or, if not `present`, with the next change. `failure` is asked at the end
    what has made the run fail.
    """

    def __init__(self, latest: AnswerTable, *, present: bool = True, failure: Failure = lambda: None) -> None:
        self._latest = latest
        self._failure = failure
        self._version = 0 if present else latest.version
        self._closed = False

    @property
    def ended(self) -> bool:
        """True if no answer will follow."""
        return self._closed or (self._latest.closed and self._latest.version == self._version)

    def take(self, timeout: float | None = None) -> pa.Table | None:
        """The answers that have changed, waited for if there are none; None if none came in time, or none will.

        Raises what made the run fail, after its last answers.
        """
        rows = self.poll(timeout)
        if rows is None and (error := self.failure()) is not None:
            raise error
        return rows

    def failure(self) -> BaseException | None:
        """What made the run fail, if that is why no answer will follow."""
        return self._failure() if self.ended and not self._closed else None

    def poll(self, timeout: float | None = None) -> pa.Table | None:
        """As `take`, but a failure of the run is not raised."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._latest.changed:
            while self._wait(until):
                rows, self._version = self._latest.since(self._version)
                if rows.num_rows:
                    # What came may have been older than what stood.
                    return rows
        return None

    def _wait(self, until: float | None) -> bool:
        """True if rows have come by then."""
        left = None if until is None else max(0.0, until - time.monotonic())
        self._latest.changed.wait_for(lambda: self.ended or self._latest.version > self._version, left)
        return not self._closed and self._latest.version > self._version

    def __iter__(self) -> Iterator[pa.Table]:
        return self

    def __next__(self) -> pa.Table:
        rows = self.take()
        if rows is None:
            raise StopIteration
        return rows

    def call(self, callback: Callback) -> Subscription:
        """Call a callback with the changes, in a thread of its own; whatever it raises ends the subscription.

        The callback is not told of the end: see `ended`. What made the run fail is raised where the run is waited for.
        """

        def work() -> None:
            try:
                while (rows := self.poll()) is not None:
                    callback(rows)
            finally:
                self.close()

        Thread(target=work, name=f"millrace-subscription-{self._latest.query}", daemon=True).start()
        return self

    def close(self) -> None:
        """End the subscription."""
        with self._latest.changed:
            self._closed = True
            self._latest.changed.notify_all()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
