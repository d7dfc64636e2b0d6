"""Functions that take an expression of their own, `transform(a, x -> x + 1)`: it is computed for all elements at once.

Rules:
- The expression sees the elements of all rows in one column per variable, and of the columns that it reads the values
  of the row that each element belongs to. It is never computed row by row; `aggregate` goes place by place.
- A variable has a name that no other one around it has, so that nested expressions do not hide each other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.expressions import Expression, Value
from millrace.kernel.columns.functions.array_building import elements_at
from millrace.kernel.columns.functions.array_functions import Elements, null_where
from millrace.kernel.columns.functions.map_functions import checked_map, keys_of, values_of
from millrace.kernel.columns.nested.nested_columns import list_of, map_of

Body = Callable[..., pa.Array]
"""Gives the values of an expression: for each owner, the row that it belongs to, and the columns of its variables."""


@dataclass(frozen=True)
class Variable(Expression):
    """A variable of an expression that is computed for elements."""

    name: str

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return rows.column(self.name)

    def __str__(self) -> str:
        return self.name.partition("#")[0]


@dataclass(frozen=True)
class LambdaCall(Expression):
    """A function of `LAMBDA_FUNCTIONS` over arguments, with an expression over variables."""

    function: str
    arguments: tuple[Expression, ...]
    variables: tuple[str, ...]
    body: Expression

    def children(self) -> tuple[Expression, ...]:
        return (*self.arguments, self.body)

    def with_children(self, children: Sequence[Expression]) -> Expression:
        *arguments, body = children
        return replace(self, arguments=tuple(arguments), body=body)

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return LAMBDA_FUNCTIONS[self.function](self._computed(rows), *(each.over(rows) for each in self.arguments))

    def _computed(self, rows: pa.RecordBatch) -> Body:
        read = {*self.body.columns(), *self._outer_variables()}

        def over(owners: Any, *columns: pa.Array) -> pa.Array:
            taken = [rows.column(name).take(pa.array(owners)) for name in read]
            given = dict(zip(self.variables, columns, strict=False))
            return self.body.over(pa.RecordBatch.from_arrays([*taken, *given.values()], names=[*read, *given]))

        return over

    def _outer_variables(self) -> Iterator[str]:
        """The variables around it that its body reads."""
        parts = list(self.body.parts())
        own = {name for part in (self, *parts) if isinstance(part, LambdaCall) for name in part.variables}
        return (part.name for part in parts if isinstance(part, Variable) and part.name not in own)

    def __str__(self) -> str:
        names = ", ".join(name.partition("#")[0] for name in self.variables)
        arrow = f"{names if len(self.variables) == 1 else f'({names})'} -> {self.body}"
        return f"{self.function}({', '.join(map(str, (*self.arguments, arrow)))})"


def is_free(expression: Expression) -> bool:
    """True if an expression has no variable of an expression around it."""
    return not any(isinstance(part, Variable) for part in expression.parts())


def _truth(values: pa.Array) -> Any:
    return np.asarray(pc.fill_null(values, False))


def _places(elements: Elements) -> pa.Array:
    return pa.array(elements.places.astype(np.int32))


def _transform(body: Body, lists: pa.Array) -> pa.Array:
    elements = Elements(lists)
    found = body(elements.owners, elements.values, _places(elements))
    return list_of(pa.array(elements.lengths), found, pa.list_(found.type), lists.is_null())


def _filter(body: Body, lists: pa.Array) -> pa.Array:
    elements = Elements(lists)
    return elements.kept(_truth(body(elements.owners, elements.values, _places(elements))))


def _decided(decides: bool) -> Callable[..., pa.Array]:
    """`exists`, or `forall`: the value that decides where an element has it, null where one is null, else the other."""

    def compute(body: Body, lists: pa.Array) -> pa.Array:
        elements = Elements(lists)
        values = body(elements.owners, elements.values)
        hit = elements.any_of(_truth(values if decides else pc.invert(values)))
        unknown = ~hit & elements.any_of(np.asarray(values.is_null()))
        return pa.array(hit == decides, mask=unknown | np.asarray(lists.is_null()))

    return compute


def _aggregate(body: Body, lists: pa.Array, start: pa.Array) -> pa.Array:
    """The elements of each array taken up one after the other, the first ones of all arrays, then the second ones."""
    elements, found = Elements(lists), start
    for place in range(int(elements.lengths.max(initial=0))):
        rows = np.flatnonzero(elements.lengths > place)
        values = elements.values.take(pa.array(elements.starts[rows] + place))
        step = body(rows, found.take(pa.array(rows)), values)
        where = np.arange(len(lists))
        where[rows] = len(lists) + np.arange(len(rows))
        found = pa.concat_arrays([found, step]).take(pa.array(where))
    return null_where(found, lists)


def _zip_with(body: Body, left: pa.Array, right: pa.Array) -> pa.Array:
    lengths, owners, columns = elements_at([left, right])
    found = body(owners, *columns)
    return null_where(list_of(pa.array(lengths), found, pa.list_(found.type)), left, right)


def _entries(maps: pa.Array) -> tuple[Elements, Elements]:
    return Elements(keys_of(maps)), Elements(values_of(maps))


def _map_filter(body: Body, maps: pa.Array) -> pa.Array:
    keys, values = _entries(maps)
    mask = _truth(body(keys.owners, keys.values, values.values))
    kept, others = keys.kept(mask), values.kept(mask)
    return map_of(Elements(kept).lengths, kept.flatten(), others.flatten(), maps.type, maps.is_null())


def _transform_keys(body: Body, maps: pa.Array) -> pa.Array:
    keys, values = _entries(maps)
    found = body(keys.owners, keys.values, values.values)
    return checked_map(pa.array(keys.lengths), found, values.values, maps.is_null())


def _transform_values(body: Body, maps: pa.Array) -> pa.Array:
    keys, values = _entries(maps)
    found = body(keys.owners, keys.values, values.values)
    return map_of(keys.lengths, keys.values, found, pa.map_(keys.values.type, found.type), maps.is_null())


def _sorted(body: Body, lists: pa.Array) -> pa.Array:
    """Arrays in the order that an expression of two elements says: neighbours change places, in all arrays at once."""
    elements = Elements(lists)
    order = np.arange(len(elements.values))
    places, ends = elements.places, elements.lengths[elements.owners]
    for turn in range(int(elements.lengths.max(initial=0))):
        at = np.flatnonzero((places % 2 == turn % 2) & (places + 1 < ends))
        pair = [elements.values.take(pa.array(order[at + step])) for step in (0, 1)]
        swap = at[_truth(pc.greater(body(elements.owners[at], *pair), 0))]
        order[swap], order[swap + 1] = order[swap + 1], order[swap]
    return elements.taken(order)


LAMBDA_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "transform": _transform,
    "filter": _filter,
    "exists": _decided(True),
    "forall": _decided(False),
    "aggregate": _aggregate,
    "zip_with": _zip_with,
    "map_filter": _map_filter,
    "transform_keys": _transform_keys,
    "transform_values": _transform_values,
    "array_sort": _sorted,
}
