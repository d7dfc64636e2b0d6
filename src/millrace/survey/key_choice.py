"""Which columns look like keys: their values come again and again, and in many rows each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.survey.column_kinds import ColumnKind
from millrace.survey.time_choice import TimeChoice
from millrace.survey.time_profile import worst_lateness

Values = Any  # pa.ChunkedArray

_NAMED = re.compile(
    r"(^|_)(id|key|code|symbol|user|device|sensor|host|account|customer|ip|mac|epc|tag|venue)s?$", re.IGNORECASE
)
_LEAST_ROWS = 3
"""Of a key, in the mean."""
_MOST = 3
_MOST_PARTS = 64


@dataclass(frozen=True)
class KeyChoice:
    """A column that may be a key: how many keys there are, and how late a row is at worst among those of its key."""

    column: str
    keys: int
    rows_per_key: float
    worst: int | None
    """None if it was not measured: there are too many keys."""


def key_choices(columns: Mapping[str, Values], kinds: Sequence[ColumnKind], time: TimeChoice | None) -> list[KeyChoice]:
    """The columns that look like keys, the best first."""
    taken = [kind for kind in kinds if _may_be_key(kind) and (time is None or kind.name != time.column)]
    best = sorted(taken, key=lambda kind: (_NAMED.search(kind.name) is None, kind.nulls > 0, -kind.distinct))
    return [_key(kind, columns[kind.name], time) for kind in best[:_MOST]]


def _may_be_key(kind: ColumnKind) -> bool:
    plain = pa.types.is_string(kind.type) or (pa.types.is_integer(kind.type) and _NAMED.search(kind.name) is not None)
    return plain and not kind.comma_numbers and 1 < kind.distinct <= kind.rows / _LEAST_ROWS


def _key(kind: ColumnKind, column: Values, time: TimeChoice | None) -> KeyChoice:
    worst = None
    if time is not None and not time.nulls and kind.distinct <= _MOST_PARTS and len(time.times) == len(column):
        codes = pc.fill_null(pc.index_in(column, pc.unique(column)), -1).to_numpy()
        worst = max(worst_lateness(time.times[codes == code]) for code in np.unique(codes))
    return KeyChoice(kind.name, kind.distinct, kind.rows / kind.distinct, worst)
