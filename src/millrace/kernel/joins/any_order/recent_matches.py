"""The rows that came last to one input of a join: few, so that they are looked through instead of searched.

They become a run, with an index and a segment, when there are many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask, Times
from millrace.kernel.joins.any_order.match_keys import KeyReader, same
from millrace.kernel.joins.any_order.match_run import MatchRows, Questions
from millrace.kernel.stores.recent_rows import RecentRows

ROOM = 1024
"""How many rows there may be."""


class RecentMatches(RecentRows):
    """Recent rows with their times, the last times that may match them, their keys as numbers, and what was matched."""

    def __init__(self, reader: KeyReader) -> None:
        super().__init__(np.int64, np.int64, np.int64, np.bool_)
        self.reader = reader

    @property
    def times(self) -> Times:
        """Each row's time."""
        return self.numbers(0)

    @property
    def untils(self) -> Times:
        """The last time that may match each row."""
        return self.numbers(1)

    @property
    def values(self) -> Integers:
        """Each row's key as a number."""
        return self.numbers(2)

    @property
    def matched(self) -> Mask:
        """Which rows have been matched."""
        return self.numbers(3)

    def keep(self, given: MatchRows) -> None:
        """Keep rows, of which there are some."""
        matched = False if given.matched is None else given.matched
        self.add(given.rows, given.times, given.untils, given.values, matched)

    def mark(self, rows: Integers) -> None:
        """Say that rows have been matched."""
        self.matched[rows] = True

    def all(self) -> MatchRows:
        """All of them as rows like others."""
        return MatchRows(self.reader, self.rows, self.times, self.untils, self.matched, self.values)

    def answers(self, asked: Questions) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of a question and a row that answers it, if there are any; see `Run.answers`."""
        values, own = asked.of(asked.source.values), self.values
        if len(asked) == 1:
            rows = np.flatnonzero(
                (own == values[0]) & (self.times <= asked.upper[0]) & (self.untils >= asked.latest[0])
            )
            questions = np.zeros(len(rows), np.int64)
        else:
            every = own == values[:, None]
            every &= self.times <= asked.upper[:, None]
            every &= self.untils >= asked.latest[:, None]
            questions, rows = np.nonzero(every)
        if len(rows) and not self.reader.exact:
            equal = same(asked.source.columns, asked.rows(questions), self.reader.columns(self.rows), rows)
            questions, rows = questions[equal], rows[equal]
        if len(rows):
            yield questions, rows
