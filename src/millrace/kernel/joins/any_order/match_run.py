"""Runs of rows that matches are looked up in, by key and time at once.

The distinct keys of a run are numbered, and number and time of a row make one integer, by which the rows are sorted.
The rows of a key within a range of times then stand together, and two binary searches find them, for a whole batch of
questions at once. Where both do not fit 63 bits the time is coarsened, and compared again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, dense, ranges, starts
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times
from millrace.kernel.joins.any_order.match_keys import KeyReader, same, same_as_before

FEW = 64
"""Up to so many questions are looked up one by one."""

_BITS = 63

_CLOSE = 4
"""Values are looked up in a table if it has at most so many places for each."""

_LOOKS = 8
"""After so many questions of how many rows are released, rows are put in the order of release."""

_PAIRS = 2**22
"""Pairs that are made at once, at most: each takes memory before a condition refuses it."""


class MatchRows:
    """Rows without null keys, each with its time and the last time that may match it.

    They never change; but of an outer side it is noted which have been `matched`.
    """

    def __init__(
        self,
        reader: KeyReader,
        rows: pa.RecordBatch,
        times: Times,
        untils: Times,
        matched: Mask | None = None,
        values: Integers | None = None,
    ) -> None:
        self.reader = reader
        self.rows = rows
        self.times = times
        self.untils = untils
        self.matched = matched
        if values is not None:
            self.values = values

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def values(self) -> Integers:
        """Each row's key as a number."""
        return self.reader.values(self.rows)

    @cached_property
    def columns(self) -> list[pa.Array]:
        """The key columns as they are compared."""
        return self.reader.columns(self.rows)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the greatest time."""
        return int(self.times.min()), int(self.times.max())

    @cached_property
    def first(self) -> int:
        """The least `until`."""
        return int(self.untils.min())

    @cached_property
    def last(self) -> int:
        """The greatest `until`: no later time matches any of them."""
        return int(self.untils.max())

    def mark(self, places: Integers) -> None:
        """Say that rows have been matched."""
        assert self.matched is not None
        self.matched[places] = True

    def where(self, mask: Mask) -> MatchRows:
        """The rows where a mask holds; the rows themselves where it holds everywhere."""
        if mask.all():
            return self
        rows = self.rows.filter(pa.array(mask))
        matched = None if self.matched is None else self.matched[mask]
        return MatchRows(self.reader, rows, self.times[mask], self.untils[mask], matched, self.values[mask])


class Questions:
    """What is looked up: some rows, each with the time that an answer must reach and the last that it may have."""

    def __init__(self, source: MatchRows, places: Integers | None, latest: Times, upper: Times) -> None:
        self.source = source
        self.places = places
        """Which rows of the source ask, None where each does, in their order."""
        self.latest = latest
        self.upper = upper

    def __len__(self) -> int:
        return len(self.latest)

    def of(self, numbers: Integers) -> Integers:
        """What the asking rows have of some numbers of all rows of their source."""
        return numbers if self.places is None else numbers[self.places]

    def rows(self, questions: Integers) -> Integers:
        """The places of the rows that ask some questions."""
        return questions if self.places is None else self.places[questions]


class MatchRun(MatchRows):
    """Rows in order of their key's number and their time.

    `numbered`: the distinct keys and each row's number, where they are known.
    """

    def __init__(self, given: MatchRows, numbered: tuple[Integers, Integers] | None = None) -> None:
        distinct, codes = numbered or dense(given.values)
        least, greatest = given.span
        code_bits, time_bits = (len(distinct) - 1).bit_length(), (greatest - least).bit_length()
        self.distinct = distinct
        self.span = (least, greatest)
        self._shift = max(0, code_bits + time_bits - _BITS)
        self._bits = time_bits - self._shift
        self._keys, order = _ordered((codes << self._bits) | self._offsets(given.times), code_bits + self._bits)
        self.moved = order is not None
        """True if the rows were in another order before."""
        rows, times, untils, matched = given.rows, given.times, given.untils, given.matched
        if order is not None:
            rows, times, untils = rows.take(pa.array(order)), times[order], untils[order]
            matched = None if matched is None else matched[order]
        super().__init__(given.reader, rows, times, untils, matched)
        self._looks = 0
        self._seen = (NO_BOUND, 0)
        """The last bound that was looked at, and how many rows are released below it."""

    def _offsets(self, times: Times) -> Integers:
        # Unsigned, because the span of a run may be larger than the greatest integer with a sign.
        offsets = times.view(np.uint64) - np.uint64(self.span[0] % 2**64)
        return (offsets >> np.uint64(self._shift)).view(np.int64)

    @property
    def codes(self) -> Integers:
        """The number of each row's key."""
        return self._keys >> self._bits

    @cached_property
    def values(self) -> Integers:
        return self.distinct[self.codes]

    @cached_property
    def firsts(self) -> Integers:
        """The first row of each key, and behind the last one how many rows there are."""
        return np.append(np.flatnonzero(starts(self.codes)), len(self))

    @cached_property
    def pure(self) -> bool:
        """True if rows of equal values have equal keys: then other rows are compared with one row per value only."""
        if self.reader.exact:
            return True
        codes = self.codes
        return bool((same_as_before(self.columns) | (codes[1:] != codes[:-1])).all())

    @cached_property
    def leaving(self) -> tuple[Times, Integers]:
        """The `untils` in order, and the row of each: the order in which rows are released."""
        offsets = (self.untils.view(np.uint64) - np.uint64(self.first % 2**64)).view(np.int64)
        bits = (self.last - self.first).bit_length()
        order = _ordered(offsets if bits <= _BITS else self.untils, bits)[1]
        return (self.untils, np.arange(len(self))) if order is None else (self.untils[order], order)

    def gone(self, bound: Microseconds) -> int:
        """How many rows are released below a bound.

        A run that has just been restored may serve one batch only: it is looked through a few times before it is put
        in order.
        """
        if bound == END_OF_TIME:
            return len(self)
        if bound <= self.first:
            return 0
        if self._seen[0] != bound:
            self._looks += 1
            sought = self._looks > _LOOKS or "leaving" in vars(self)
            found = np.searchsorted(self.leaving[0], bound) if sought else np.count_nonzero(self.untils < bound)
            self._seen = bound, int(found)
        return self._seen[1]

    @cached_property
    def steady(self) -> bool:
        """True if all rows are kept equally long, so that they are released in order of their times."""
        kept = self.untils - self.times
        return bool((kept == kept[0]).all())

    # Looking up

    def answers(self, asked: Questions, ahead: int | None, each_until: bool) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of a question and a row of this run that answers it.

        `ahead`: rows of this run are matched at most so long after their own time. `each_until`: some are not for
        even so long, as their `untils` say.
        """
        lower = np.full(len(asked), self.span[0]) if ahead is None else shifted(asked.latest, -ahead)
        codes, verified = self._codes(asked)
        meets = (codes >= 0) & (asked.upper >= self.span[0]) & (lower <= self.span[1])
        if ahead is None:
            meets &= asked.latest <= self.last
        places = np.flatnonzero(meets)
        if not len(places):
            return
        begins, counts = self._find(codes[places], lower[places], asked.upper[places])
        for part in _parts(counts):
            questions = np.repeat(places[part], counts[part])
            rows = ranges(begins[part], counts[part])
            kept = self._kept(asked, questions, rows, lower, each_until)
            if kept is not None:
                questions, rows = questions[kept], rows[kept]
            if not verified:
                equal = same(asked.source.columns, asked.rows(questions), self.columns, rows)
                questions, rows = questions[equal], rows[equal]
            if len(rows):
                yield questions, rows

    def _codes(self, asked: Questions) -> tuple[Integers, bool]:
        """The number here of each question's key, -1 where it has none; True if the keys themselves were compared."""
        source = asked.source
        if not isinstance(source, MatchRun):
            codes = self._numbers(asked.of(source.values))
            return codes, self._verify(codes, source.columns, asked.places)
        found = self._numbers(source.distinct)
        verified = source.pure and self._verify(found, source.columns, source.firsts)
        return found[asked.of(source.codes)], verified

    def _numbers(self, values: Integers) -> Integers:
        """The number of each value here; -1 where there is none."""
        if self._table is None:
            places = np.minimum(np.searchsorted(self.distinct, values), len(self.distinct) - 1)
            return np.where(self.distinct[places] == values, places, -1)
        inside = (values >= self.distinct[0]) & (values <= self.distinct[-1])
        offsets = np.where(inside, values - self.distinct[0], 0)
        return np.where(inside, self._table[offsets], -1)

    @cached_property
    def _table(self) -> Integers | None:
        """The number of each value from the least to the greatest, where they are close together."""
        least, greatest = int(self.distinct[0]), int(self.distinct[-1])
        if greatest - least > _CLOSE * len(self.distinct):
            return None
        table = np.full(greatest - least + 1, -1)
        table[self.distinct - least] = np.arange(len(self.distinct))
        return table

    def _verify(self, codes: Integers, columns: list[pa.Array], rows: Integers | None) -> bool:
        """Take back the codes of rows whose keys differ; True if one row per key is enough to tell."""
        if self.reader.exact:
            return True
        if not self.pure:
            return False
        known = np.flatnonzero(codes >= 0)
        if len(known):
            equal = same(columns, known if rows is None else rows[known], self.columns, self.firsts[codes[known]])
            codes[known[~equal]] = -1
        return True

    def _find(self, codes: Integers, lower: Times, upper: Times) -> tuple[Integers, Integers]:
        """Where the rows of each code within a range of times begin, and how many there are.

        Ranges meet the span of the run; where the time is coarse some rows of them lie outside.
        """
        base, (least, greatest) = codes << self._bits, self.span
        if int(lower.max()) <= least:
            begins = self.firsts[codes]
        else:
            begins = np.searchsorted(self._keys, base | self._offsets(np.maximum(lower, least)))
        if int(upper.min()) >= greatest:
            ends = self.firsts[codes + 1]
        else:
            ends = np.searchsorted(self._keys, base | self._offsets(np.minimum(upper, greatest)), side="right")
        return begins, np.maximum(ends - begins, 0)

    def _kept(
        self, asked: Questions, questions: Integers, rows: Integers, lower: Times, each_until: bool
    ) -> Mask | None:
        """Which pairs match in what the search did not decide; None where it did."""
        kept = asked.latest[questions] <= self.untils[rows] if each_until else None
        if self._shift:
            times = self.times[rows]
            inside: Mask = (times >= lower[questions]) & (times <= asked.upper[questions])
            kept = inside if kept is None else kept & inside
        return kept


def shifted(times: Times, distance: int) -> Times:
    """Times moved by a distance, as far as there is time.

    >>> shifted(np.array([1, 2**63 - 2]), 5).tolist() == [6, END_OF_TIME]
    True
    """
    if distance >= 0:
        limit = END_OF_TIME - distance
        return times + distance if times.max(initial=0) <= limit else np.minimum(times, limit) + distance
    limit = NO_BOUND - distance
    return times + distance if times.min(initial=0) >= limit else np.maximum(times, limit) + distance


def _ordered(numbers: Integers, bits: int) -> tuple[Integers, Integers | None]:
    """Numbers of `bits` bits in order, and where each stood before; None if they were in order already."""
    if bool((numbers[1:] >= numbers[:-1]).all()):
        return numbers, None
    place_bits = (len(numbers) - 1).bit_length()
    if bits + place_bits > _BITS:
        order = np.argsort(numbers, kind="stable")
        return numbers[order], order
    packed = (numbers << place_bits) | np.arange(len(numbers))
    packed.sort()
    return packed >> place_bits, packed & ((1 << place_bits) - 1)


def _parts(counts: Integers) -> Iterator[slice]:
    """Stretches of questions with not too many pairs each."""
    reached = np.cumsum(counts)
    if int(reached[-1]) <= _PAIRS:
        yield slice(0, len(counts))
        return
    cuts = np.searchsorted(reached, np.arange(_PAIRS, int(reached[-1]), _PAIRS)) + 1
    cuts = np.unique(np.concatenate([[0], cuts, [len(counts)]])).tolist()
    for start, stop in pairwise(cuts):
        yield slice(start, stop)
