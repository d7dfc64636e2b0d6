"""How far rows come out of order, and how long nothing comes, measured over the times of a file in its order.

A row is late by the greatest time before it less its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millrace.survey.time_choice import Micros

SECOND = 1_000_000
_DAY = 86_400 * SECOND
_UNITS = (("DAY", _DAY), ("HOUR", 3_600 * SECOND), ("MINUTE", 60 * SECOND), ("SECOND", SECOND))
_FINE_UNITS = (("MILLISECOND", 1_000), ("MICROSECOND", 1))
_WINDOWS = (1_000, 10_000, 100_000) + tuple(
    seconds * SECOND for seconds in (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800, 2_592_000)
)
_MOST_WINDOWS = 40


@dataclass(frozen=True)
class TimeProfile:
    """The disorder and the gaps of a stream, in microseconds."""

    rows: int
    late_rows: int
    half: int
    """Half of the rows out of order are so by at most this; the next two are for 99 and 99.9 of 100 of all rows."""
    most: int
    nearly_all: int
    worst: int
    usual_gap: int
    """Half of the gaps between neighbouring times are at most this."""
    long_gap: int
    """99 of 100 gaps are at most this."""
    longest_gap: int
    first: int
    last: int

    @property
    def window(self) -> int:
        """A length of windows of which the file fills some dozens."""
        if self.first == self.last:
            return _DAY if self.first % _DAY == 0 else 60 * SECOND
        wanted = (self.last - self.first) // _MOST_WINDOWS
        return next((each for each in _WINDOWS if each >= wanted), _WINDOWS[-1])


def time_profile(*parts: Micros) -> TimeProfile:
    """The profile of times in the order of their rows, each part by itself; there is at least one time."""
    times, late = np.concatenate(parts), np.concatenate([np.maximum.accumulate(part) - part for part in parts])
    late_only = late[late > 0]
    moments = np.unique(times)
    gaps = moments[1:] - moments[:-1]
    return TimeProfile(
        rows=len(times),
        late_rows=len(late_only),
        half=_quantile(late_only, 0.5),
        most=_quantile(late, 0.99),
        nearly_all=_quantile(late, 0.999),
        worst=int(late.max()),
        usual_gap=_quantile(gaps, 0.5),
        long_gap=_quantile(gaps, 0.99),
        longest_gap=_quantile(gaps, 1.0),
        first=int(times.min()),
        last=int(times.max()),
    )


def worst_lateness(times: Micros) -> int:
    """How late the latest row is."""
    return int((np.maximum.accumulate(times) - times).max()) if len(times) else 0


def _quantile(values: Micros, part: float) -> int:
    return int(np.quantile(values, part, method="inverted_cdf")) if len(values) else 0


def interval_at_least(micros: int) -> str:
    """An interval as SQL has it, not shorter than that many microseconds.

    >>> [interval_at_least(each) for each in (671_014_522, 7_200_000_000, 211_000, 17)]
    ['INTERVAL 672 SECONDS', 'INTERVAL 2 HOURS', 'INTERVAL 211 MILLISECONDS', 'INTERVAL 17 MICROSECONDS']
    """
    for word, unit in _UNITS:
        if micros >= unit and micros % unit == 0:
            return _counted(micros // unit, word)
    for word, unit in (_UNITS[-1], *_FINE_UNITS):
        if micros >= 10 * unit:
            return _counted(-(-micros // unit), word)
    for word, unit in _FINE_UNITS:
        if micros >= unit:
            return _counted(-(-micros // unit), word)
    return "INTERVAL 0 SECONDS"


def _counted(count: int, word: str) -> str:
    return f"INTERVAL {count} {word}{'' if count == 1 else 'S'}"
