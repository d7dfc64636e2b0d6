"""A clock for the local host that what else the machine does cannot change."""

from __future__ import annotations

from threading import Event

from millrace.hosts.system_clock import SystemClock

STEP = 50
"""Microseconds of a step of the kernel, by the counted clock."""


class CountedClock(SystemClock):
    """A clock that moves by steps of the kernel, which all take the same time, by sleep, and by a little per look."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1_700_000_000_000_000

    def wall(self) -> int:
        self.time += 1
        return self.time

    def elapsed(self) -> int:
        return self.time

    def wait(self, woken: Event, seconds: float) -> None:
        self.time += max(1, round(seconds * 1e6))

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        self.time += STEP
