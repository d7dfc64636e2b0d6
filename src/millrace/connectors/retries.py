"""When a writer tries again what another system did not take: after pauses that double, for `retry_seconds` in all."""

from __future__ import annotations

import time
from collections.abc import Mapping

from millrace.errors import RequestError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


def retry_seconds(options: Mapping[str, str]) -> float:
    """The option of a sink that says how long its writer tries.

    >>> retry_seconds({}), retry_seconds({"retry_seconds": "0"})
    (30.0, 0.0)
    """
    text = options.get("retry_seconds", "30")
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise RequestError(f'option "retry_seconds" does not take "{text}"', hint="It takes a number of seconds, or 0.")
    return found


class Retries:
    """The pauses between the tries of one write."""

    def __init__(self, seconds: float) -> None:
        self._pause, self._until = _FIRST_PAUSE, time.monotonic() + seconds

    @property
    def are_over(self) -> bool:
        """True if the time ends before the next pause does."""
        return time.monotonic() + self._pause > self._until

    def pause(self) -> None:
        """Wait before the next try."""
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
