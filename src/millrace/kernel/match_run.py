"""A run of rows that matches are looked up in: by key and time at once.

The keys of a run are numbered densely, and number and time of a row make one integer. The rows of a key within a range
of times then stand together in its order, and two binary searches find them, for a whole batch of questions at once.
Where both do not fit 63 bits the time is coarsened, and compared again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Times
from millrace.kernel.keyed import spread
from millrace.kernel.match_keys import Dense, Integers, KeyReader, dense_values, same

_FEW = 64
"""Up to so many rows keys are hashed row by row, and looked up one by one."""

_BITS = 63


def shifted(times: Times, distance: int) -> Times:
    """Times moved by a distance, as far as there is time.

    >>> shifted(np.array([1, 2**63 - 2]), 5).tolist() == [6, END_OF_TIME]
    True
    """
    if distance >= 0:
        return np.where(times > END_OF_TIME - distance, END_OF_TIME, times + distance)
    return np.where(times < NO_BOUND - distance, NO_BOUND, times + distance)


class Index:
    """Rows in order of their key's number and their time."""

    def __init__(self, codes: Integers, count: int, times: Times) -> None:
        self.least, self.greatest = int(times.min()), int(times.max())
        time_bits = (self.greatest - self.least).bit_length()
        code_bits = (count - 1).bit_length()
        self.shift = max(0, code_bits + time_bits - _BITS)
        self.bits = time_bits - self.shift
        composite = (codes << self.bits) | self._offsets(times)
        self.composite, self.order = _ordered(composite, code_bits + self.bits)

    def find(self, codes: Integers, lower: Times, upper: Times) -> tuple[Integers, Integers]:
        """Where the rows of each code within a range of times begin in the order, and how many there are.

        Ranges meet the span of the run; where the time is coarse some rows of them lie outside.
        """
        base = codes << self.bits
        begins = np.searchsorted(self.composite, base | self._offsets(np.maximum(lower, self.least)))
        ends = np.searchsorted(self.composite, base | self._offsets(np.minimum(upper, self.greatest)), side="right")
        return begins, np.maximum(ends - begins, 0)

    def _offsets(self, times: Times) -> Integers:
        # Unsigned, because the span of a run may be larger than the greatest integer with a sign.
        offsets = times.view(np.uint64) - np.uint64(self.least % 2**64)
        return (offsets >> np.uint64(self.shift)).view(np.int64)


def _ordered(numbers: Integers, bits: int) -> tuple[Integers, Integers]:
    """Numbers of so many bits in order, and the place of each before."""
    place_bits = (len(numbers) - 1).bit_length()
    if bits + place_bits > _BITS:
        order = np.argsort(numbers, kind="stable")
        return numbers[order], order
    packed = (numbers << place_bits) | np.arange(len(numbers))
    packed.sort()
    return packed >> place_bits, packed & ((1 << place_bits) - 1)


class Questions:
    """What is looked up: rows of a run, each with the time that an answer must reach and the last it may have."""

    def __init__(self, run: Run, rows: Integers, latest: Times, upper: Times) -> None:
        self.run = run
        self.rows = rows
        self.latest = latest
        self.upper = upper

    def __len__(self) -> int:
        return len(self.rows)


class Run:
    """Rows without null keys, each with its time and the last time that may match it; never changed."""

    def __init__(
        self, reader: KeyReader, rows: pa.RecordBatch, times: Times, untils: Times, values: Integers | None = None
    ) -> None:
        self.reader = reader
        self.rows = rows
        self.times = times
        self.untils = untils
        if values is not None:
            self.values = values

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the greatest time."""
        return int(self.times.min()), int(self.times.max())

    @cached_property
    def first(self) -> int:
        """The bound of the others above which some of its rows are let go."""
        return int(self.untils.min())

    @cached_property
    def last(self) -> int:
        """The greatest time that may match one of its rows."""
        return int(self.untils.max())

    @cached_property
    def leaving(self) -> tuple[Times, Integers]:
        """The `untils` in order, and the row of each: so rows are let go."""
        bits = (self.last - self.first).bit_length()
        if bits > _BITS:
            order = np.argsort(self.untils, kind="stable")
            return self.untils[order], order
        offsets, order = _ordered(self.untils - self.first, bits)
        return offsets + self.first, order

    @cached_property
    def columns(self) -> list[pa.Array]:
        """The key columns as they are compared."""
        return self.reader.columns(self.rows)

    @cached_property
    def values(self) -> Integers:
        """Each row's key as a number."""
        if self.reader.exact or len(self) <= _FEW:
            return self.reader.values(self.rows)
        return self.dense.distinct[self.dense.codes]

    @cached_property
    def dense(self) -> Dense:
        """The distinct keys."""
        if not self.reader.exact and len(self) > _FEW and "values" not in self.__dict__:
            return self.reader.dense(self.rows)
        dense = dense_values(self.values)
        if self.reader.exact:
            return dense
        pure = same(self.columns, np.arange(len(self)), self.columns, dense.firsts[dense.codes])
        return replace(dense, pure=bool(pure.all()))

    @cached_property
    def index(self) -> Index:
        """The rows in order of key and time."""
        return Index(self.dense.codes, len(self.dense.distinct), self.times)

    @property
    def in_order(self) -> Integers:
        """Its rows by number, those of a key together where they are many: neighbours are then found at once."""
        return np.arange(len(self)) if len(self) <= _FEW else self.index.order

    @cached_property
    def steady(self) -> bool:
        """Whether all its rows are kept equally long, so that they are let go in order of their times."""
        kept = self.untils - self.times
        return bool((kept == kept[0]).all())

    def compact(self) -> Run:
        """The same rows, without what else their memory holds."""
        if self.rows.get_total_buffer_size() <= 2 * self.rows.nbytes:
            return self
        rows = self.rows.take(pa.array(np.arange(len(self))))
        return Run(self.reader, rows, self.times.copy(), self.untils, self.values)

    def where(self, mask: Mask) -> Run:
        """The rows where a mask holds."""
        if mask.all():
            return self
        rows = self.rows.filter(pa.array(mask))
        return Run(self.reader, rows, self.times[mask], self.untils[mask], self.values[mask])

    def answers(self, asked: Questions, ahead: int | None) -> tuple[Integers, Integers]:
        """Pairs of a question, by its place, and a row of this run that answers it.

        `ahead`: no row of this run is matched later than so long after its own time.
        """
        lower = shifted(asked.latest, -ahead) if ahead is not None else np.full(len(asked), self.span[0])
        codes, verified = self._codes(asked)
        meets = (codes >= 0) & (asked.upper >= self.span[0]) & (lower <= self.span[1])
        places = np.flatnonzero(meets)
        if not len(places):
            return places, places
        begins, counts = self.index.find(codes[places], lower[places], asked.upper[places])
        questions = np.repeat(places, counts)
        rows = self.index.order[spread(begins, counts)]
        return self._checked(asked, questions, rows, lower if self.index.shift else None, verified)

    def _codes(self, asked: Questions) -> tuple[Integers, bool]:
        """The number here of each question's key, -1 where it has none; whether the keys themselves were compared."""
        distinct = self.dense.distinct
        if len(asked) <= _FEW:
            return _found(distinct, asked.run.values[asked.rows]), self.reader.exact
        other = asked.run.dense
        found = _found(distinct, other.distinct)
        verified = self.reader.exact
        if not verified and other.pure and self.dense.pure:
            common = np.flatnonzero(found >= 0)
            firsts = self.dense.firsts[found[common]]
            found[common[~same(asked.run.columns, other.firsts[common], self.columns, firsts)]] = -1
            verified = True
        return found[other.codes[asked.rows]], verified

    def _checked(
        self, asked: Questions, questions: Integers, rows: Integers, lower: Times | None, verified: bool
    ) -> tuple[Integers, Integers]:
        """The pairs that match in all that the search did not decide."""
        kept = asked.latest[questions] <= self.untils[rows]
        if lower is not None:
            times = self.times[rows]
            kept &= (times >= lower[questions]) & (times <= asked.upper[questions])
        questions, rows = questions[kept], rows[kept]
        if not verified and len(rows):
            equal = same(asked.run.columns, asked.rows[questions], self.columns, rows)
            questions, rows = questions[equal], rows[equal]
        return questions, rows


def _found(distinct: Integers, values: Integers) -> Integers:
    """The place of each value among distinct ones; -1 where it is not."""
    places = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    places[distinct[places] != values] = -1
    return places
