"""What a paper claims, and the value measured beside it: a range that the value must lie in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class Claim:
    """A claim that holds when `measured` lies between `low` and `high`; `unit` is "s", "%" (of 1), or nothing.

    `reproduces` is False if the claim is the paper's, and is known not to hold here; docs/figures.md says why.

    >>> print(Claim("half of them pass", 0.52, 0.45, 0.55, "%"))
    half of them pass: 52 % (must be 45 % to 55 %)
    >>> print(Claim("all of them pass", 0.52, 1, 1, "%", reproduces=False))
    all of them pass: 52 % (the paper has 100 %; known not to reproduce)
    """

    says: str
    measured: float
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    reproduces: bool = True

    @property
    def holds(self) -> bool:
        """True if the measured value lies in the range."""
        return self.low <= self.measured <= self.high

    @property
    def as_expected(self) -> bool:
        """True if it holds, or is known not to: a claim that holds against what is known is reported, too."""
        return self.holds is self.reproduces

    @property
    def verdict(self) -> str:
        """One word: the claim holds, fails, or differs from the paper as is known.

        >>> Claim("x", 1, low=2).verdict, Claim("x", 1, low=2, reproduces=False).verdict
        ('FAILS', 'differs')
        """
        if not self.as_expected:
            return "FAILS" if self.reproduces else "HOLDS, though known not to"
        return "holds" if self.holds else "differs"

    def __str__(self) -> str:
        must = "must be" if self.reproduces else "the paper has"
        known = "" if self.reproduces else "; known not to reproduce"
        return f"{self.says}: {value_text(self.measured, self.unit)} ({must} {self.range_text()}{known})"

    def range_text(self) -> str:
        """The range in words."""
        low, high = value_text(self.low, self.unit), value_text(self.high, self.unit)
        if self.low == self.high:
            return low
        if math.isinf(self.low):
            return f"at most {high}"
        return f"at least {low}" if math.isinf(self.high) else f"{low} to {high}"


def about(says: str, measured: float, expected: float, within: float, unit: str = "") -> Claim:
    """The claim that a value is as expected, within a share of it.

    >>> about("half", 0.52, 0.5, 0.1).holds
    True
    """
    return Claim(f"{says}, within {within * 100:g} %", measured, expected * (1 - within), expected * (1 + within), unit)


def furthest(ratios: Iterable[float]) -> float:
    """The ratio that is furthest from 1, up or down.

    >>> furthest([1.02, 0.9, 1.05])
    0.9
    """
    return max(ratios, key=lambda ratio: abs(math.log(ratio)))


def growth(values: Iterable[float]) -> list[float]:
    """Each value over the one before it.

    >>> growth([1, 2, 6])
    [2.0, 3.0]
    """
    return [after / before for before, after in pairwise(values)]


def value_text(value: float, unit: str = "") -> str:
    """A value as a person reads it, to three digits; a share just below 100 % is not rounded up to it.

    >>> value_text(0.00011, "s"), value_text(0.1523, "%"), value_text(2163.0)
    ('0.11 ms', '15.2 %', '2,163')
    """
    if unit == "s":
        size, name = next((each for each in _PREFIXES if abs(value) >= each[0]), _PREFIXES[-1])
        # A tenth of a millisecond reads better than a hundred microseconds beside other milliseconds.
        size, name = (1e-3, "ms") if 1e-5 <= abs(value) < 1e-3 else (size, name)
        return f"{value / size:.3g} {name}"
    if unit == "%":
        return f"{value * 100:.4g} %" if 0.99 < value < 1 else f"{value * 100:.3g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
