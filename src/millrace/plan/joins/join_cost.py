"""What an in-order window join of two streams costs, in closed form (003 sections 4 and 5, equations 1 to 8).

Rules:
- Times are in seconds and rates in rows per second. The slow stream is the paper's S with rate λ1, the fast one its T
  with λ2; c is what comparing a pair of rows takes, |w| the window, n = λ2/λ1 the fast rows between two slow ones.
- A response time is that of a fast row: from its arrival until it has been joined and its results may leave.
- The paper's equations hold for evenly spaced rows. Those of Poisson streams stand beside them.
- C_S is the time to probe S, so it is the cost of a row of T. On one processor the probes of both streams add up, so
  the load is twice what equation 1 counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["sync_filter", "filter_order"]


@dataclass(frozen=True)
class JoinCost:
    """A window join: `pair` is c, `window` is |w|, `slow` and `fast` are λ1 and λ2.

    >>> cost = JoinCost.of(pair=0.0005, window=60, rates=(10, 1))
    >>> cost.between, cost.keeps_up, round(cost.work, 3), round(cost.load, 3)
    (10.0, True, 0.3, 0.6)
    >>> round(cost.sync_filter, 3), round(cost.filter_order, 3), round(cost.improvement, 3)
    (0.715, 0.55, 0.231)
    >>> cost.adaptive(alpha=0.25), round(assured_improvement(0.25), 3), round(switching_product(0.0005, 60, 0.25), 3)
    ('filter_order', 0.2, 8.333)
    """

    pair: float
    window: float
    slow: float
    fast: float

    @classmethod
    def of(cls, pair: float, window: float, rates: tuple[float, float]) -> JoinCost:
        """The join of two streams of these rates, in either order; for windows that differ `window` is their mean."""
        return cls(pair, window, min(rates), max(rates))

    @property
    def between(self) -> float:
        """n: how many fast rows arrive from one slow row to the next."""
        return self.fast / self.slow

    @property
    def probe_slow(self) -> float:
        """C_S = c|w|λ1: what a fast row takes, which is compared with a window of slow ones."""
        return self.pair * self.window * self.slow

    @property
    def work(self) -> float:
        """c|w|λ1λ2: what the rows of either stream take per second; the adaptive join compares it with its alpha."""
        return self.probe_slow * self.fast

    @property
    def keeps_up(self) -> bool:
        """Equation 1, c|w| < 1/(λ1λ2): True if each stream by itself is processed as fast as it arrives."""
        return self.work < 1

    @property
    def load(self) -> float:
        """2c|w|λ1λ2: the share of one processor that both streams take together; from 1 on the join falls behind."""
        return 2 * self.work

    # Evenly spaced rows

    @property
    def sync_filter(self) -> float:
        """Equation 3: the mean response time with Sync-Filter; n times that is equation 2.

        Beside the wait of Filter-Order a fast row waits for the work on the rows before it, and for its own.
        """
        return self.filter_order + (self.between + 1) / 2 * self.probe_slow

    @property
    def filter_order(self) -> float:
        """Equation 5: the mean response time with Filter-Order, whatever a pair costs; n times that is equation 4."""
        return 1 / self.slow - (self.between - 1) / (2 * self.fast)

    @property
    def improvement(self) -> float:
        """Equation 7: by how much Filter-Order is faster, as a share of Sync-Filter: c|w|λ1λ2 / (1 + c|w|λ1λ2).

        It is equation 6 reduced, and tends to 1/2 as the work approaches what equation 1 allows (equation 8).
        """
        return self.work / (1 + self.work)

    # Poisson streams

    @property
    def filter_order_poisson(self) -> float:
        """The mean response time with Filter-Order where rows arrive at random: until the next slow row, 1/λ1."""
        return 1 / self.slow

    @property
    def sync_filter_poisson(self) -> float:
        """The mean response time with Sync-Filter where rows arrive at random, as long as the load is low.

        A fast row finds n others before it on average, twice as many as where rows are evenly spaced.
        """
        return 1 / self.slow + (self.between + 1) * self.probe_slow

    def adaptive(self, alpha: float) -> Method:
        """The method that the adaptive join settles on: Filter-Order from c|w|λ1λ2 >= alpha on."""
        return "filter_order" if self.work >= alpha else "sync_filter"


def switching_product(pair: float, window: float, alpha: float) -> float:
    """The product of both rates from which on the adaptive join uses Filter-Order: alpha / (c|w|)."""
    return alpha / (pair * window)


def assured_improvement(alpha: float) -> float:
    """The relative improvement that is reached wherever the adaptive join uses Filter-Order (003 section 6)."""
    return alpha / (1 + alpha)
