"""AND, OR, CASE and coalesce where a guarded function stands in them: one of the user's own, or from_json.

Rules:
- Such a function may be slow, fail on rows that are not meant for it, or count them: it is called for the rows where
  its value counts, and no others. `CASE WHEN x > 0 THEN f(x) END` never calls it with 0.
- Of AND and OR the sides without such a function are computed first, wherever they stand.
- Values are those that are computed on whole columns elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import scalar_functions
from millrace.kernel.columns.casts import Value
from millrace.kernel.elements import Mask

if TYPE_CHECKING:
    from millrace.kernel.columns.expressions import Expression


CONNECTIVES = ("and", "or")
"""The functions of any number of conditions."""


def computed_everywhere(function: str, arguments: Sequence[Expression]) -> Sequence[Expression]:
    """Those of a function's arguments that are computed for all rows."""
    if function in CONNECTIVES:
        return _plain_first(arguments)[:1]
    return arguments[:1] if function in GUARDED else arguments


def _plain_first(arguments: Sequence[Expression]) -> list[Expression]:
    return sorted(arguments, key=lambda each: each.is_guarded)


def _values(expression: Expression, rows: pa.RecordBatch, wanted: Mask) -> Value:
    """The values where they are wanted; elsewhere, if they are guarded, null."""
    if not expression.is_guarded or wanted.all():
        return expression.evaluate(rows)
    found = expression.over(rows.filter(pa.array(wanted)))
    return found.take(pa.array(np.cumsum(wanted) - 1, mask=~wanted))


def _is(value: Value, truth: bool, count: int) -> Mask:
    """Where a condition is true, or false; nowhere that it is null."""
    same = value if truth else pc.invert(value)
    known = pc.fill_null(same, False)
    found: Mask = np.broadcast_to(known.as_py() if isinstance(known, pa.Scalar) else np.asarray(known), (count,))
    return found


def _connected(function: str, decides: bool) -> Callable[[Sequence[Expression], pa.RecordBatch], Value]:
    """AND or OR: where the sides before it decide, a side does not count."""

    def evaluate(arguments: Sequence[Expression], rows: pa.RecordBatch) -> Value:
        first, *others = _plain_first(arguments)
        found = first.evaluate(rows)
        for each in others:
            value = _values(each, rows, ~_is(found, decides, rows.num_rows)) if each.is_guarded else each.evaluate(rows)
            found = scalar_functions.FUNCTIONS[function](found, value)
        return found

    return evaluate


def _case(arguments: Sequence[Expression], rows: pa.RecordBatch) -> Value:
    """`condition, value, condition, value, ..., otherwise`: the value of the first condition that is true."""
    left = np.ones(rows.num_rows, np.bool_)
    branches: list[Value] = []
    for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        branches.append(_values(condition, rows, left))
        chosen = left & _is(branches[-1], True, rows.num_rows)
        branches.append(_values(value, rows, chosen))
        left = left & ~chosen
    return scalar_functions.FUNCTIONS["case"](*branches, _values(arguments[-1], rows, left))


def _coalesce(arguments: Sequence[Expression], rows: pa.RecordBatch) -> Value:
    left = np.ones(rows.num_rows, np.bool_)
    values: list[Value] = []
    for each in arguments:
        values.append(_values(each, rows, left))
        left = left & ~_is(pc.is_valid(values[-1]), True, rows.num_rows)
    return scalar_functions.FUNCTIONS["coalesce"](*values)


GUARDED: dict[str, Callable[[Sequence[Expression], pa.RecordBatch], Value]] = {
    "and": _connected("and", decides=False),
    "or": _connected("or", decides=True),
    "case": _case,
    "coalesce": _coalesce,
}
"""The functions that need not compute all their arguments for all rows."""
