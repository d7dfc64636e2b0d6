"""Progress that an operator deduces from the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.state import Changes


class Slack(Operator):
    """Assume that no row comes more than `slack` behind the greatest time seen (004 section 2, option 2).

    Rows further behind are dropped and counted, whatever their own stream has promised.
    State: the greatest time, and how many rows were dropped. Punctuations: those that come in are ignored, but for the
    end of time; its own is the greatest time less the slack.
    """

    label = "slack"
    passes_rows = True
    senses_bounds = True

    def __init__(self, slack: Microseconds) -> None:
        self.slack = slack
        self._greatest = NO_BOUND + slack
        """So that the bound below it is NO_BOUND at first."""
        self._turned_away = 0

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        times = batch.times
        before = np.maximum.accumulate(np.concatenate([[self._greatest], times]))
        kept = batch.where(times >= before[:-1] - self.slack)
        self._turned_away += len(batch) - len(kept)
        if len(kept):
            yield kept
        if before[-1] > self._greatest:
            self._greatest = int(before[-1])
            yield Punctuation(self._greatest - self.slack)

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        if punctuation.until == END_OF_TIME:
            yield punctuation

    def required(self, until: Microseconds, port: int = 0) -> Microseconds:
        # It ignores the bounds of streams, so it asks for none.
        return END_OF_TIME

    @property
    def turned_away(self) -> int:
        return self._turned_away

    def changes(self) -> Changes:
        return Changes(note={"greatest": self._greatest, "turned_away": self._turned_away})

    def restore(self, changes: Changes) -> None:
        self._greatest, self._turned_away = changes.note["greatest"], changes.note["turned_away"]
