"""The clock of real time: the machine's."""

from __future__ import annotations

import time

from millrace.kernel.elements import Microseconds


class SystemClock:
    """The machine's clock; work costs what it costs."""

    def now(self) -> Microseconds:
        """Microseconds since the epoch."""
        return time.time_ns() // 1_000

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Nothing: real work takes real time."""

    def compare(self, node: str, pairs: int) -> None:
        """Nothing."""
