"""Aggregates that users wrote as a class in Python.

The class has `initialize(self) -> state`, `iterate(self, state, *columns) -> state`, `terminate(self, state) -> value`
and, if it can, `merge(self, state, other) -> state`. This is the one place where a user's code is called: once per
group, with whole columns. States are objects of the user's own: they are pickled, so that they can be saved and sent,
and begin with a mark that says so. Nothing else in a checkpoint is pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from millrace.errors import RequestError, RunError
from millrace.kernel.aggregates.functions.function import AggregateFunction, Columns
from millrace.kernel.aggregates.functions.user_aggregates import Fold, PythonAggregate
from millrace.kernel.columns.grouping import Groups
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.columns.user_functions import class_at

_METHODS = ("initialize", "iterate", "terminate")
PICKLED = b"pickle:"
"""What the state of a user's aggregate begins with."""


class Calls:
    """The methods of a user's class, with failures that name the aggregate."""

    def __init__(self, spec: PythonAggregate) -> None:
        self.spec = spec
        self.given = _made(spec)
        self.can_merge = callable(getattr(self.given, "merge", None))

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method gives."""
        # A user's code may raise anything.
        try:
            return getattr(self.given, method)(*arguments)
        except Exception as error:
            raise RunError(
                f'"{method}" of aggregate "{self.spec.name}" failed: {type(error).__name__}: {error}',
                hint=f"The code is at {self.spec.place}.",
            ) from error

    def folded(self, columns: Columns) -> Any:
        """The state after some rows."""
        return self.call("iterate", self.call("initialize"), *columns)

    def results(self, states: Iterator[Any]) -> pa.Array:
        """The result of each state, in the declared type."""
        values = [self.call("terminate", state) for state in states]
        plain = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
        try:
            # A type that Arrow finds by itself is cast with care; one that is asked for would cut fractions off.
            return (
                pa.array(plain).cast(self.spec.returns) if _are_fractions(plain) else pa.array(plain, self.spec.returns)
            )
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise RunError(
                f'aggregate "{self.spec.name}" gave a value that is no {sql_name(self.spec.returns)}: {error}',
                hint="Let its terminate give what RETURNS says, or declare another type there.",
            ) from error


class PythonMerge(AggregateFunction):
    """A user's aggregate whose states can be merged. A partial is a pickled state, null where there was no row."""

    partial_bytes = 256

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls.spec.name)
        self.calls = calls

    def of_rows(self, groups: Groups, arguments: Columns) -> Columns:
        cut = _cut(groups, arguments)
        return _states(self._kept(self.calls.folded(each)) if count else None for count, each in cut)

    def merged(self, groups: Groups, partials: Columns) -> Columns:
        return _states(self._one(each.drop_null().to_pylist()) for _, (each,) in _cut(groups, partials))

    def _one(self, states: list[bytes]) -> bytes | None:
        """Pickled states as one."""
        if len(states) < 2:
            return states[0] if states else None
        merged = _loaded(states[0])
        for state in states[1:]:
            merged = self.calls.call("merge", merged, _loaded(state))
        return self._kept(merged)

    def _kept(self, state: Any) -> bytes:
        # A user's state may refuse in any way.
        try:
            return PICKLED + pickle.dumps(state)
        except Exception as error:
            raise RunError(
                f'the state of aggregate "{self.name}" cannot be kept: {type(error).__name__}: {error}',
                hint="Let the state be plain data: numbers, text, lists, dictionaries.",
            ) from error

    def result(self, partials: Columns) -> pa.Array:
        states = partials[0].to_pylist()
        return self.calls.results(
            self.calls.call("initialize") if state is None else _loaded(state) for state in states
        )


class PythonFold(Fold):
    """A user's aggregate without merge: it gets all rows of a group in one call, in order of time."""

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls.spec.name, len(calls.spec.arguments))
        self.calls = calls

    def in_order(self, groups: Groups, arguments: Columns) -> pa.Array:
        cut = _cut(groups, arguments)
        states = (self.calls.folded(each) if count else self.calls.call("initialize") for count, each in cut)
        return self.calls.results(states)


def _loaded(state: bytes) -> Any:
    assert state.startswith(PICKLED), "a state that was not kept by us"
    return pickle.loads(state[len(PICKLED) :])


def _are_fractions(values: list[Any]) -> bool:
    return any(isinstance(value, float) for value in values)


def _states(states: Iterator[bytes | None]) -> Columns:
    return [pa.array(list(states), pa.binary())]


def _cut(groups: Groups, columns: Columns) -> Iterator[tuple[int, Columns]]:
    """How many rows each group has, and their columns."""
    order = pa.array(groups.order)
    ordered = [column.take(order) for column in columns]
    start = 0
    for count in groups.counts.tolist():
        yield count, [column.slice(start, count) for column in ordered]
        start += count


def _made(spec: PythonAggregate) -> Any:
    """An instance of the class at the place that the aggregate names."""
    found = class_at(spec.place, f'the class of aggregate "{spec.name}"')
    lacks = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if lacks:
        raise RequestError(
            f'the class of aggregate "{spec.name}", {spec.place}, has no method "{lacks[0]}"',
            hint=f"Give it the methods {', '.join(_METHODS)}, and merge if states can be merged.",
        )
    # A user's code may raise anything.
    try:
        return found()
    except Exception as error:
        raise RequestError(
            f'the class of aggregate "{spec.name}" cannot be made: {type(error).__name__}: {error}',
            hint="Its constructor is called without arguments.",
        ) from error


def function_of(spec: PythonAggregate) -> AggregateFunction:
    """The aggregate function of a user's class."""
    calls = Calls(spec)
    return PythonMerge(calls) if calls.can_merge else PythonFold(calls)
