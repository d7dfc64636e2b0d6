"""The query of 002 section 6.3: a count by key over windows of an update stream, and a server that each row keeps busy.

A row arrives every tick, and each row of a window takes `cost` ticks. Rows are stamped with their arrival, or,
`counted`, by the source of their key: it counts its own rows, as many ticks apart as there are keys, so that every
window of a key holds as many rows as any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millrace.experiments.figures.experiment import Outcome
from millrace.experiments.figures.key_arrivals import feed, keys_of, numbered
from millrace.hosts.virtual.host import Costs, VirtualRun
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling

EAGER, LAZY, EVERY, RANDOM = "EAGER", "LAZY", "append", "random windows"
UPDATE_WINDOWS = {EAGER: "eager", LAZY: "lazy", EVERY: "every", RANDOM: "random"}
OWN, BOUND = "own", "bound"
_SECOND = 1_000_000


@dataclass(frozen=True)
class WindowCase:
    """Windows of `length` ticks, a `slide` apart, over so many rows of some keys: in turn, or by Zipf's law."""

    windows: str
    length: int
    slide: int
    rows: int
    keys: int = 1
    theta: float | None = None
    close: str = OWN
    counted: bool = False
    seed: int = 1
    cost: int = 1

    @property
    def text(self) -> str:
        """The query, and its stream."""
        own = f", tick = '{self._apart} SECONDS'" if self.close == OWN else ""
        # The sources' own counts differ, and no bound has to close anything.
        order = f"DISORDER INTERVAL {self.rows * self.keys} SECONDS" if self.counted else "ORDERED"
        return f"""CREATE STREAM s (k BIGINT, ts TIMESTAMP, at TIMESTAMP)
  TIMESTAMP BY ts {order} UPDATE KEY (k) FROM iterable REPLAY BY at;
CREATE QUERY windows WITH ({spelling("update_window", UPDATE_WINDOWS[self.windows])}, close = '{self.close}'{own}) AS
  SELECT k, count(*) AS n FROM s [RANGE {self.length} SECONDS SLIDE {self.slide} SECONDS WA ts] GROUP BY k;"""

    @property
    def _apart(self) -> int:
        """How many ticks apart the stamps of a key's rows are at least."""
        return self.keys if self.counted else 1

    def run(self, sample_every: float | None = None) -> VirtualRun:
        """The run, finished; its queue is looked at every so many ticks."""
        keys, arrived = keys_of(self.keys, self.rows, self.theta, self.seed), np.arange(self.rows)
        stamps = numbered(keys) * self.keys if self.counted else arrived
        run = VirtualRun(
            parse_network(self.text),
            feeds={"s": feed(keys, ts=stamps, at=arrived)},
            cost=Costs(of={"marked_aggregate": self.cost * _SECOND}),
            rows_per_step=1,
            sample_every=None if sample_every is None else round(sample_every * _SECOND),
        )
        run.run()
        return run

    def outcome(self) -> Outcome:
        """The staleness from the first row to the last one, in ticks."""
        run = self.run()
        metrics = run.samples("windows").metrics
        assert metrics is not None
        return Outcome(
            results=run.metrics().sinks["windows"].rows,
            staleness=metrics.application_mean / _SECOND,
            queue_staleness=metrics.queue_mean / _SECOND,
        )


def staleness(outcome: Outcome) -> float:
    """The staleness of the application, in ticks."""
    return outcome.staleness
