"""The clock never goes back and never stands still, whatever is done to the machine's."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from millrace.hosts.system_clock import SetBack, SystemClock

SECOND = 1_000_000_000


class Machine:
    """The clocks of a machine, in nanoseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.elapsed = 1_700_000_000 * SECOND, 5 * SECOND
        monkeypatch.setattr(time, "time_ns", lambda: self.wall)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.elapsed)

    def pass_by(self, seconds: float) -> None:
        self.wall += int(seconds * SECOND)
        self.elapsed += int(seconds * SECOND)


def test_a_clock_that_is_set_back_goes_on_at_half_speed_until_it_is_right_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    clock = SystemClock()
    before = clock.now()
    assert before == machine.wall // 1000
    machine.wall -= 3600 * SECOND
    shown = [clock.now()]
    for _ in range(7300):
        machine.pass_by(1)
        shown.append(clock.now())
    assert shown[0] == before
    assert all(after - now in (500_000, 1_000_000) for now, after in pairwise(shown))
    assert shown[2] == before + 1_000_000, "half speed"
    assert shown[-1] == machine.wall // 1000, "caught up after two hours"


def test_a_clock_that_is_set_forward_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock = SystemClock()
    clock.now()
    machine.wall += 3600 * SECOND
    assert clock.now() == machine.wall // 1000


def test_a_clock_goes_on_from_what_an_earlier_process_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock, seen = SystemClock(), machine.wall // 1000 + 3_600_000_000
    assert clock.now(seen) == seen
    machine.pass_by(10)
    assert clock.now(seen) == seen + 5_000_000
    assert clock.now(seen - 10) == seen + 5_000_000


def test_a_clock_that_is_set_back_is_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    back = SetBack()
    machine.pass_by(100)
    machine.wall -= SECOND
    assert not back.noticed()
    machine.wall -= 3600 * SECOND
    assert back.noticed()
    assert not back.noticed()
