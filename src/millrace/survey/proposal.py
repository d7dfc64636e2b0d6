"""All that was found out about a path, as one record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from millrace.kernel.elements import TIMESTAMP
from millrace.survey.column_kinds import ColumnKind, column_kind
from millrace.survey.file_shape import FileShape, file_shape
from millrace.survey.key_choice import KeyChoice, key_choices
from millrace.survey.sampled_rows import SampledRows, sampled_rows
from millrace.survey.time_choice import TimeChoice, time_choices
from millrace.survey.time_profile import TimeProfile, time_profile


@dataclass(frozen=True)
class Proposal:
    """What the files hold, and what a stream over them should say."""

    name: str
    shape: FileShape
    rows: SampledRows
    kinds: Sequence[ColumnKind]
    times: Sequence[TimeChoice]
    """The columns that can be the time, the chosen one first."""
    profile: TimeProfile | None
    keys: Sequence[KeyChoice]

    @property
    def time(self) -> TimeChoice | None:
        """The chosen time; None if no column can be it."""
        return self.times[0] if self.times else None

    @property
    def null_words(self) -> list[str]:
        """The words that stand for null in some column."""
        return list(dict.fromkeys(word for kind in self.kinds for word in kind.null_words))

    def declared(self, kind: ColumnKind) -> pa.DataType:
        """The type that the stream gives a column: TIMESTAMP also for times that are written as the chosen one is."""
        alike = {each.column for each in self.times if self.time and each.format == self.time.format}
        return TIMESTAMP if kind.name in alike else kind.type


def proposal(path: str) -> Proposal:
    """What a file or folder holds."""
    shape = file_shape(path)
    rows = sampled_rows(shape)
    decimal = shape.format != "csv" or "delimiter" in shape.options
    kinds = [column_kind(name, column, commas_are_decimal=decimal) for name, column in rows.columns.items()]
    times = time_choices(rows.columns, kinds)
    time = times[0] if times else None
    keys = key_choices(rows.columns, kinds, time)
    return Proposal(stream_name(path), shape, rows, kinds, times, time_profile(time.times) if time else None, keys)


def stream_name(path: str) -> str:
    """A name for a stream over a path.

    >>> stream_name("data/2024 clicks.csv.gz"), stream_name("data/in/")
    ('_2024_clicks', 'in')
    """
    name = re.sub(r"\W+", "_", Path(path).name.split(".")[0]).strip("_").lower() or "rows"
    return f"_{name}" if name[0].isdigit() else name
