"""Which column is the time of a stream, and how the files write it.

Rules:
- A column of text is a time if its values fit ISO or one pattern: all of them, or, if it is named like a time, all but
  one in twenty, such as a line of totals. A column of numbers is one if all are moments between 1990 and 2100 in
  seconds, milliseconds, microseconds or nanoseconds, and its name or its order says so too.
- Of several times that of the event is taken, not that of its receipt, and one without nulls.
- Where day and month could be either, that order is taken by which fewer rows are out of order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.conversion import UNFIT, from_text, text_pattern, unfit_positions
from millrace.connectors.files.times.timestamp_patterns import timestamp_pattern
from millrace.connectors.files.times.timestamps import TimeSpelling, timestamps
from millrace.kernel.elements import TIMESTAMP
from millrace.survey.column_kinds import ColumnKind, without

Values = Any  # pa.ChunkedArray
Micros = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]

_EPOCHS = {"epoch_seconds": 1.0, "epoch_millis": 1e3, "epoch_micros": 1e6, "epoch_nanos": 1e9}
_EARLIEST, _LATEST = 631_152_000.0, 4_102_444_800.0
"""1990 and 2100, in seconds since 1970."""
_DATES = (
    *("dd/MM/yyyy", "MM/dd/yyyy", "d/M/yyyy", "M/d/yyyy", "dd.MM.yyyy", "d.M.yyyy", "dd-MM-yyyy", "MM-dd-yyyy"),
    *("yyyy/MM/dd", "yyyyMMdd", "dd-MMM-yyyy", "d MMM yyyy", "MMM d yyyy", "dd/MMM/yyyy", "dd/MM/yy", "MM/dd/yy"),
)
_CLOCKS = (
    *("HH:mm:ss", "HH:mm", "HH:mm:ss.SSS", "HH:mm:ss.SSSSSS", "HHmmss", "H:mm", "H:mm:ss"),
    *("hh:mm:ss a", "hh:mm a", "h:mm a", "h:mm:ss a"),
)
_TAILS = tuple(product((" ", "'T'", ":", ", ", ""), _CLOCKS, ("", "XXX", " Z")))
_PROBED = 100
_NAMED = re.compile(r"(^|_)(ts|time|timestamp|datetime|event_time|eventtime|when|moment)$", re.IGNORECASE)
_ALSO_NAMED = re.compile(
    r"time|date|(^|_)(ts|t|at|on|day|ms|us|ns|millis\w*|micros\w*|epoch|seconds)($|_)", re.IGNORECASE
)
_OF_RECEIPT = re.compile(r"recv|receiv|arriv|ingest|insert|load|updated|modified|process|^kafka_", re.IGNORECASE)


@dataclass(frozen=True)
class TimeChoice:
    """A column that can be the time, its `timestamp_format`, its values, and how well it serves."""

    column: str
    format: str
    times: Micros
    """Without nulls, in the order of the rows."""
    places: Places
    """The numbers of the rows that have these times."""
    nulls: int
    score: float
    either: str = ""
    """Another format that all values fit too."""
    unfit: int = 0
    """How many of its values are no times."""
    path: tuple[str, ...] = ()
    """The names that lead to it inside a struct; a stream then computes the column, as `reader` says."""
    reader: str = ""

    @property
    def label(self) -> str:
        """The column, or the names that lead to it inside one."""
        return ".".join(self.path) or self.column

    @property
    def sure(self) -> str:
        """How sure it is that this is the time of the events."""
        return "a guess" if self.either or self.score < 3 else "likely" if self.score < 5 else "sure"


def time_choices(columns: Mapping[str, Values], kinds: Sequence[ColumnKind]) -> list[TimeChoice]:
    """The columns that can be the time, the best first."""
    found = [choice for kind in kinds if (choice := _choice(kind, columns[kind.name])) is not None]
    return sorted(found, key=lambda choice: -choice.score)


def _choice(kind: ColumnKind, column: Values) -> TimeChoice | None:
    if pa.types.is_string(column.type):
        column = without(column, kind.null_words) if kind.null_words else column
    if column.null_count == len(column):
        return None
    if pa.types.is_integer(kind.type) or pa.types.is_floating(kind.type):
        return _of_numbers(kind, column)
    if not (pa.types.is_string(column.type) or pa.types.is_temporal(column.type)):
        return None
    is_text = pa.types.is_string(column.type)
    fitting = _fitting(column, list(_text_formats(column)) if is_text else ["iso"])
    places, unfit = _valid(column), 0
    if not fitting and is_text and _NAMED.search(kind.name):
        times_alone, kept = _without_unfit(column)
        unfit = len(kept) - len(times_alone)
        fitting = _fitting(times_alone, list(_text_formats(times_alone))) if unfit else []
        places = places[kept]
    if not fitting:
        return None
    format, times = min(fitting, key=lambda each: _disordered(each[1]))
    others = [each for each, read in fitting if each != format and not np.array_equal(read, times)]
    score = _score(kind, times) + (2 if unfit else 3)
    return TimeChoice(kind.name, format, times, places, column.null_count, score, next(iter(others), ""), unfit)


def _fitting(column: Values, formats: Sequence[str]) -> list[tuple[str, Micros]]:
    """The formats that all values of a column fit, each with the times."""
    return [(format, times) for format in formats if (times := _micros(column, format)) is not None]


def _valid(column: Values) -> Places:
    """The numbers of the rows that have a value."""
    return np.flatnonzero(pc.is_valid(column).to_numpy())


def _without_unfit(column: Values) -> tuple[Values, npt.NDArray[np.bool_]]:
    """The values of a column but the few that do not fit the format of the first one; True for each that stays."""
    cells = pc.drop_null(column).combine_chunks()
    kept = np.ones(len(cells), dtype=np.bool_)
    for format in _text_formats(pa.chunked_array([cells.slice(0, 1)])):
        spelling = TimeSpelling(format)
        convert, pattern = from_text(TIMESTAMP, spelling), text_pattern(TIMESTAMP, spelling)
        unfit = unfit_positions(cells, TIMESTAMP, convert, pattern)
        if 0 < len(unfit) * 20 <= len(cells):
            kept[unfit] = False
            break
    return pa.chunked_array([cells.filter(pa.array(kept))]), kept


def _of_numbers(kind: ColumnKind, column: Values) -> TimeChoice | None:
    try:
        numbers = pc.drop_null(pc.cast(column, pa.float64(), safe=False)).to_numpy()
    except UNFIT:
        return None
    for format, unit in _EPOCHS.items():
        if numbers.min() >= _EARLIEST * unit and numbers.max() <= _LATEST * unit:
            times = _micros(column, format)
            if times is None:
                return None
            named, ordered = _ALSO_NAMED.search(kind.name) is not None, _disordered(times) < 0.5
            score = _score(kind, times) + (2 if named and ordered else 1)
            places = _valid(column)
            return TimeChoice(kind.name, format, times, places, column.null_count, score) if named or ordered else None
    return None


def _score(kind: ColumnKind, times: Micros) -> float:
    """How much speaks for a column: its name, and that it goes on; nulls speak against it."""
    named = 3 if _NAMED.search(kind.name) else 2 if _ALSO_NAMED.search(kind.name) else 0
    receipt = 2 if _OF_RECEIPT.search(kind.name) else 0
    moves = 1 if len(times) > 1 and times.min() < times.max() else 0
    return named + moves - receipt - (4 if kind.nulls else 0) - (1 if pa.types.is_date(kind.type) else 0)


def _disordered(times: Micros) -> float:
    """Which part of the rows have a time before that of the row before them."""
    return float(np.mean(np.diff(times) < 0)) if len(times) > 1 else 0.0


def _micros(column: Values, format: str) -> Micros | None:
    """The times of a column in microseconds, without nulls; None if some do not fit the format."""
    try:
        read = pa.chunked_array([timestamps(chunk, TimeSpelling(format)) for chunk in pc.drop_null(column).chunks])
        micros: Micros = pc.drop_null(pc.cast(read, pa.int64())).to_numpy()
        return micros if len(micros) else None
    except UNFIT:
        return None


def _text_formats(column: Values) -> Iterator[str]:
    """The formats that the first values of a column fit."""
    probe = pa.chunked_array([pc.drop_null(column).slice(0, _PROBED).combine_chunks()])
    first = probe[0].as_py().strip()
    if pc.all(pc.match_substring_regex(probe, r"^\s*\d{4}-\d\d")).as_py():
        if _micros(probe, "iso") is not None:
            yield "iso"
        return
    for date in _DATES:
        # There are thousands of patterns: only those that begin as the first value does are tried.
        if re.match(timestamp_pattern(date).expression, first):
            for pattern in [date, *(f"{date}{between}{clock}{zone}" for between, clock, zone in _TAILS)]:
                if re.fullmatch(timestamp_pattern(pattern).expression, first) and _micros(probe, pattern) is not None:
                    yield pattern
