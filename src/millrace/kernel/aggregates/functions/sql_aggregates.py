"""Aggregates that users wrote as expressions over a state's variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns
from millrace.kernel.aggregates.functions.user_aggregates import Assignments, Fold, SqlAggregate
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.grouping import Groups, Places
from millrace.kernel.columns.integers import stable_order, starts

_ROW = "__row"
"""A column that lets a batch have rows before it has variables."""


class States:
    """The steps of a user's aggregate, on the states of many groups at once."""

    def __init__(self, spec: SqlAggregate) -> None:
        self.spec = spec
        self.names = [name for name, _ in spec.initialize]
        self.types = dict(zip(self.names, (column.type for column in self.first(0)), strict=True))

    def first(self, count: int) -> Columns:
        """The variables of states before their first row."""
        rows = pa.RecordBatch.from_arrays([pa.nulls(count)], names=[_ROW])
        return [expression.over(rows) for _, expression in self.spec.initialize]

    def iterated(self, states: Columns, arguments: Columns) -> Columns:
        """The variables after one more row each."""
        given = dict(zip((name for name, _ in self.spec.parameters), arguments, strict=True))
        return self._assigned(self.spec.iterate, states, given)

    def merged(self, states: Columns, others: Columns) -> Columns:
        """The variables of pairs of states as one."""
        assert self.spec.merge is not None
        return self._assigned(
            self.spec.merge, states, {f"other.{n}": c for n, c in zip(self.names, others, strict=True)}
        )

    def terminated(self, states: Columns) -> pa.Array:
        """The result of each state."""
        return self.spec.terminate.over(self._rows(states, {})).cast(self.spec.returns)

    def _assigned(self, assignments: Assignments, states: Columns, given: Mapping[str, pa.Array]) -> Columns:
        rows, values = self._rows(states, given), dict(assignments)
        return [self._value(name, values.get(name), rows) for name in self.names]

    def _value(self, name: str, expression: Expression | None, rows: pa.RecordBatch) -> pa.Array:
        """The new value of a variable; one that is not assigned keeps its value."""
        return rows.column(name) if expression is None else expression.over(rows).cast(self.types[name])

    def _rows(self, states: Columns, given: Mapping[str, pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*states, *given.values()], names=[*self.names, *given])


class SqlMerge(AggregateFunction):
    """A user's aggregate whose states can be merged. A partial is True if there was a row, and the variables."""

    partial_bytes = 64

    def __init__(self, spec: SqlAggregate) -> None:
        super().__init__(spec.name)
        self.states = States(spec)
        self.width = 1 + len(spec.initialize)

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        count = len(groups.places)
        return self._one(groups, self.states.iterated(self.states.first(count), arguments))

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        some, *states = partials
        return self._one(groups.of(some.to_numpy(zero_copy_only=False)), [column.filter(some) for column in states])

    def _one(self, groups: Groups, states: Columns) -> Columns:
        """The state of each group: neighbours are merged, all pairs at once, until each group has one."""
        codes, states = groups.codes[groups.order], _taken(states, groups.order)
        while (paired := _pairs(codes)).any():
            left = np.flatnonzero(paired)
            alone = np.flatnonzero(~paired & ~np.append(False, paired[:-1]))
            merged = self.states.merged(_taken(states, left), _taken(states, left + 1))
            codes = np.concatenate([codes[left], codes[alone]])
            states = [pa.concat_arrays(both) for both in zip(merged, _taken(states, alone), strict=True)]
            order = stable_order(codes)
            codes, states = codes[order], _taken(states, order)
        return [pa.array(~groups.empty), *_spread(codes, groups.size, states)]

    def result(self, partials: Columns) -> pa.Array:
        some, *states = partials
        first = self.states.first(len(some))
        return self.states.terminated([pc.if_else(some, *both) for both in zip(states, first, strict=True)])


class SqlFold(Fold):
    """A user's aggregate without merge: the i-th rows of all groups are taken in together, in order of time."""

    def __init__(self, spec: SqlAggregate) -> None:
        super().__init__(spec.name, len(spec.parameters))
        self.states = States(spec)

    def in_order(self, groups: Groups, arguments: Columns) -> pa.Array:
        # Long groups first: those that have an i-th row are then always the first ones.
        by_length = np.argsort(-groups.counts, kind="stable")
        lengths = groups.counts[by_length]
        begins = (np.cumsum(groups.counts) - groups.counts)[by_length]
        states: Columns = self.states.first(groups.size)
        for number in range(int(lengths.max(initial=0))):
            going = int(np.searchsorted(-lengths, -number))
            rows = _taken(arguments, begins[:going] + number)
            moved = self.states.iterated([column.slice(0, going) for column in states], rows)
            states = [pa.concat_arrays([new, old.slice(going)]) for new, old in zip(moved, states, strict=True)]
        return self.states.terminated(_taken(states, np.argsort(by_length)))


def _pairs(codes: Places) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True where a row is merged with the next: every other one of a group, counted from its first."""
    same = np.append(codes[1:] == codes[:-1], False)[: len(codes)]
    first = np.flatnonzero(starts(codes))
    place = np.arange(len(codes)) - np.repeat(first, np.diff(np.append(first, len(codes))))
    return same & (place % 2 == 0)


def _taken(columns: Columns, rows: Places) -> list[pa.Array]:
    return [column.take(pa.array(rows)) for column in columns]


def _spread(codes: Places, size: int, states: Columns) -> list[pa.Array]:
    """One state for each group; nulls for those without."""
    where = np.full(size, -1, np.int64)
    where[codes] = np.arange(len(codes))
    return [column.take(pa.array(where, mask=where < 0)) for column in states]


def function_of(spec: SqlAggregate) -> AggregateFunction:
    """The aggregate function of a user's expressions."""
    return SqlFold(spec) if spec.merge is None else SqlMerge(spec)
