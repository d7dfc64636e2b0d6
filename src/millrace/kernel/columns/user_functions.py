"""Scalar functions that users wrote in Python.

Rules:
- A function is called row by row, with plain values of Python, None for null. One that is marked with `columns` is
  called with Arrow arrays, one per argument, and gives an array of as many values.
- It is never called ahead of its rows: an operator computes it on the piece that a step takes, not on the whole block,
  so that each row is charged for itself. It is not computed for constants either, when a query is read.
- What it gives is of the declared type, or the run fails: nothing is rounded, cut off or read as another kind.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from millrace.errors import RequestError, RunError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.sql_types import sql_name

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__millrace_columns__"
_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    lambda kind: pa.types.is_timestamp(kind),
    lambda kind: pa.types.is_decimal(kind),
)
"""Kinds of types of which each is brought to another of its kind, if every value fits."""


def columns(function: Function) -> Function:
    """Mark a function that takes Arrow arrays and gives one, instead of one value per row.

    >>> import pyarrow.compute as pc
    >>> @columns
    ... def gross(net: pa.Array, rate: pa.Array) -> pa.Array:
    ...     return pc.multiply(net, pc.add(rate, 1.0))
    """
    setattr(function, _MARK, True)
    return function


@dataclass(frozen=True)
class UserFunction:
    """A function by its place, `package.module:function`."""

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    place: str


@dataclass(frozen=True)
class UserCall(Expression):
    """A function of the user's own over arguments, which have the types that it takes."""

    function: UserFunction
    arguments: tuple[Expression, ...]

    is_guarded = True

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: Sequence[Expression]) -> Expression:
        return replace(self, arguments=tuple(children))

    def evaluate(self, rows: pa.RecordBatch) -> pa.Array:
        if rows.num_rows == 0:
            # Types are found out on no rows, long before the code has to be there.
            return pa.array([], self.function.returns)
        return loaded(self.function).over([each.over(rows) for each in self.arguments])

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.arguments))})"


def calls_by_row(expressions: Iterable[Expression]) -> bool:
    """True if one of the expressions calls a function row by row."""
    calls = (part for each in expressions for part in each.parts() if isinstance(part, UserCall))
    return any(not loaded(call.function).by_columns for call in calls)


@cache
def loaded(function: UserFunction) -> LoadedFunction:
    """The code of a function, imported; refuses a place where there is none that fits."""
    return LoadedFunction(function)


class LoadedFunction:
    """A user's function at work, with failures that name it."""

    def __init__(self, spec: UserFunction) -> None:
        self.spec = spec
        self.given = found_at(spec.place, f'function "{spec.name}"', "'package.module:function'")
        self.by_columns = bool(getattr(self.given, _MARK, False))
        _check_call(spec, self.given)

    def over(self, arguments: Sequence[pa.Array]) -> pa.Array:
        """Its values for the rows of some columns."""
        return self._of_columns(arguments) if self.by_columns else self._of_rows(arguments)

    def _of_rows(self, arguments: Sequence[pa.Array]) -> pa.Array:
        rows = list(zip(*(column.to_pylist() for column in arguments), strict=True))
        values: list[Any] = []
        for row in rows:
            # A user's code may raise anything.
            try:
                values.append(self.given(*row))
            except Exception as error:
                raise self._failed(f"for ({_shown(row)})", error) from error
        try:
            return as_type(values, self.spec.returns)
        except _WRONG as error:
            row, value = next(pair for pair in zip(rows, values, strict=True) if not _fits(pair[1], self.spec.returns))
            raise self._wrong(f"{_shown([value])} for ({_shown(row)})") from error

    def _of_columns(self, arguments: Sequence[pa.Array]) -> pa.Array:
        count = len(arguments[0])
        # A user's code may raise anything.
        try:
            given = self.given(*arguments)
        except Exception as error:
            first = [column[0].as_py() for column in arguments]
            raise self._failed(f"for {count} rows, of which the first is ({_shown(first)})", error) from error
        found = pa.array(given) if isinstance(given, np.ndarray) else given
        found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        if not isinstance(found, pa.Array):
            raise self._wrong(f"{type(given).__name__} instead of an Arrow array")
        if len(found) != count:
            raise self._wrong(f"{len(found)} values for {count} rows", "Let it give one value per row.")
        if found.type == self.spec.returns:
            return found
        if not _is_alike(found.type, self.spec.returns):
            raise self._wrong(f"an array of {sql_name(found.type)}")
        try:
            return found.cast(self.spec.returns)
        except pa.ArrowException as error:
            raise self._wrong(str(error).splitlines()[0]) from error

    def _failed(self, what: str, error: Exception) -> RunError:
        return RunError(
            f'function "{self.spec.name}" failed {what}: {type(error).__name__}: {error}',
            hint=f"The code is at {self.spec.place}; null comes as {'a null' if self.by_columns else 'None'}.",
        )

    def _wrong(self, what: str, hint: str = "") -> RunError:
        kind = sql_name(self.spec.returns)
        return RunError(
            f'function "{self.spec.name}" returns {kind}, but gave {what}',
            hint=hint or f"Let {self.spec.place} give {kind} or null, or declare another type after RETURNS.",
        )


_WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError)


def as_type(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of Python as an array of a type; raises one of `_WRONG` for a value that is of another."""
    plain = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    if pa.types.is_integer(kind):
        # Arrow would cut fractions off, and take truth for a number.
        plain = [_whole(value) for value in plain]
    elif pa.types.is_floating(kind):
        plain = [_fraction(value) for value in plain]
    elif pa.types.is_temporal(kind) and any(isinstance(value, int | np.integer) for value in plain):
        raise TypeError("a number is no time")
    return pa.array(plain, kind)


def _whole(value: Any) -> Any:
    if isinstance(value, bool | np.bool_) or (isinstance(value, float | np.floating) and not value.is_integer()):
        raise TypeError(f"{value} is no whole number")
    return int(value) if isinstance(value, float | np.floating) else value


def _fraction(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{value} is no number")
    return float(value) if isinstance(value, int) else value


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        as_type([value], kind)
    except _WRONG:
        return False
    return True


def _is_alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """True if values of a type may be brought to another, if they fit."""
    if isinstance(found, pa.DictionaryType):
        return _is_alike(found.value_type, wanted)
    return found == wanted or pa.types.is_null(found) or any(is_a(found) and is_a(wanted) for is_a in _KINDS)


def _shown(values: Sequence[Any]) -> str:
    """Values as Python writes them, long ones shortened."""
    return ", ".join(_SHORT.repr(value) for value in values)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _check_call(spec: UserFunction, given: Any) -> None:
    """Refuse what cannot be called with as many arguments as were declared."""
    if not callable(given):
        raise RequestError(
            f'function "{spec.name}" is no function at "{spec.place}", but {type(given).__name__}',
            hint="Write the place of a function as 'package.module:function'.",
        )
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return  # Some functions that are written in C do not say what they take.
    count = len(spec.arguments)
    try:
        signature.bind(*spec.arguments)
    except TypeError as error:
        raise RequestError(
            f'function "{spec.name}" is declared with {count} argument{"" if count == 1 else "s"}, but '
            f"{spec.place} takes {signature}",
            hint="Let the declaration and the code agree.",
        ) from error


def class_at(place: str, what: str) -> Any:
    """What stands at a place "package.module:Class"; `what` names it where nothing does.

    >>> class_at("fractions:Fraction", 'the class of aggregate "f"').__name__
    'Fraction'
    """
    return found_at(place, what, "'package.module:Class'")


def found_at(place: str, what: str, written: str) -> Any:
    """What stands at a place; `what` names it where nothing does, and `written` is how its place is written."""
    module, _, path = place.partition(":")
    # Importing runs a user's code, which may raise anything.
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise RequestError(
            f'{what} is not found at "{place}": {error}',
            hint=f"Write its place as {written}, and let the package be where Python finds it.",
        ) from error
    return found
