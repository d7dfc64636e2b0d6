"""Column expressions on whole batches, with SQL's null logic and Spark's meanings.

Rules:
- An expression is a frozen tree; it evaluates to an Arrow array, or to a scalar where it is constant.
- Null in, null out, except where SQL says otherwise; AND and OR are three-valued.
- `/` is always fractional, `div` and `%` truncate towards zero, and dividing by zero gives null.
- The type of an expression is the type it gives on no rows, so that it is never stated twice.
- A function of the user's own, and from_json, is called for the rows where its value counts, and no others: see
  short_circuit.py. Others are computed for all rows; where that fails, such as by overflow, for those rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.columns import scalar_functions
from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.nested.json_functions import COUNTED
from millrace.kernel.columns.nested.nested_columns import repeated
from millrace.kernel.columns.short_circuit import CONNECTIVES, GUARDED
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import INTERVAL

Value = Any  # pa.Array | pa.Scalar: Arrow's own functions take both alike


class Expression:
    """A column computed from a batch."""

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        """An array of one value per row, or a scalar that stands for all of them."""
        raise AssertionError("an expression says how it is evaluated")

    def children(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        return ()

    def with_children(self, children: Sequence[Expression]) -> Expression:
        """The same of other expressions."""
        assert not children, "an expression that is made of others says how"
        return self

    def parts(self) -> Iterator[Expression]:
        """It and all that it is made of, from the outside in."""
        yield self
        for child in self.children():
            yield from child.parts()

    @cached_property
    def is_guarded(self) -> bool:
        """True if it calls a user function or from_json: these are computed for the rows where their value counts."""
        return any(child.is_guarded for child in self.children())

    def over(self, rows: pa.RecordBatch) -> pa.Array:
        """One value per row."""
        value = self.evaluate(rows)
        if isinstance(value, pa.Scalar):
            return repeated(value, rows.num_rows)
        return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value

    def type_in(self, schema: pa.Schema) -> pa.DataType:
        """The type it has over rows of `schema`; refuses what cannot be computed."""
        try:
            return self.over(_no_rows(schema, set(self.columns()))).type
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            # Arrow knows best which types its functions take: asked with no rows, it says no by raising.
            kinds = ", ".join(sql_name(child.type_in(schema)) for child in self.children())
            raise RequestError(
                f'"{self}" cannot be computed for {kinds or "its arguments"}',
                hint="Bring the arguments to one type with CAST(... AS type).",
            ) from error

    def columns(self) -> Iterator[str]:
        """The names of the columns it reads."""
        for child in self.children():
            yield from child.columns()


def _no_rows(schema: pa.Schema, columns: Iterable[str]) -> pa.RecordBatch:
    read = pa.schema([schema.field(name) for name in columns])
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in read], schema=read)


@dataclass(frozen=True)
class Column(Expression):
    """A column by its name."""

    name: str

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return rows.column(self.name)

    def columns(self) -> Iterator[str]:
        yield self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Expression):
    """A constant of a type; `None` is null. An interval is an integer of type duration[us]."""

    value: object
    type: pa.DataType

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return pa.scalar(self.value, self.type)

    def __str__(self) -> str:
        if pa.types.is_duration(self.type):
            return f"INTERVAL '{self.value}' {'MICROSECONDS' if self.type == INTERVAL else 'MONTHS'}"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return "NULL" if self.value is None else str(self.value)


@dataclass(frozen=True)
class Call(Expression):
    """A function of `scalar_functions.FUNCTIONS` over arguments.

    AND and OR are flat: `(a AND b) AND c` is one call of three arguments. Its texts are those of the nested calls, as
    operators are named by them.
    """

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert self.function in scalar_functions.FUNCTIONS, self.function
        first = self.arguments[0] if self.function in CONNECTIVES else None
        if isinstance(first, Call) and first.function == self.function:
            object.__setattr__(self, "arguments", (*first.arguments, *self.arguments[1:]))

    def __repr__(self) -> str:
        if self.function not in CONNECTIVES or len(self.arguments) < 3:
            return f"Call(function={self.function!r}, arguments={self.arguments!r})"
        opening = f"Call(function={self.function!r}, arguments=("
        first, *others = map(repr, self.arguments)
        return opening * len(others) + first + "".join(f", {each}))" for each in others)

    @cached_property
    def is_guarded(self) -> bool:
        return self.function in COUNTED or any(child.is_guarded for child in self.arguments)

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: Sequence[Expression]) -> Expression:
        return replace(self, arguments=tuple(children))

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        if self.function in GUARDED and self.is_guarded:
            return GUARDED[self.function](self.arguments, rows)
        try:
            return self._computed(rows)
        except pa.ArrowInvalid:
            if self.function not in GUARDED:
                raise
        return GUARDED[self.function]([*map(_wholly_guarded, self.arguments)], rows)

    def _computed(self, rows: pa.RecordBatch) -> Value:
        values = [argument.evaluate(rows) for argument in self.arguments]
        if self.function in COUNTED:
            return COUNTED[self.function](rows, *values)
        compute: Callable[..., Value] = scalar_functions.FUNCTIONS[self.function]
        return compute(*values)

    def __str__(self) -> str:
        words = [str(argument) for argument in self.arguments]
        if self.function in ("is_null", "is_not_null", "not", "in", "case"):
            return _spelled(self.function, words)
        if self.function in CONNECTIVES:
            others = "".join(f" {self.function.upper()} {word})" for word in words[1:])
            return "(" * (len(words) - 1) + words[0] + others
        if len(words) == 2 and (not self.function.isidentifier() or self.function in ("div", "like")):
            return f"({words[0]} {self.function.upper()} {words[1]})"
        return f"{self.function}({', '.join(words)})"


@dataclass(frozen=True)
class _Guarded(Expression):
    """An expression that is computed for the rows where its value counts, and no others."""

    inner: Expression
    is_guarded = True

    def children(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return self.inner.evaluate(rows)


def _wholly_guarded(expression: Expression) -> Expression:
    """An expression of which each part is computed for the rows where its value counts, and no others."""
    parts = [_wholly_guarded(each) for each in expression.children()]
    return _Guarded(expression.with_children(parts) if parts else expression)


def _spelled(function: str, words: list[str]) -> str:
    """The functions that SQL writes in a way of their own."""
    match function:
        case "is_null" | "is_not_null":
            return f"({words[0]} {function.replace('_', ' ').upper()})"
        case "not":
            return f"(NOT {words[0]})"
        case "in":
            return f"({words[0]} IN ({', '.join(words[1:])}))"
    pairs = zip(words[:-1:2], words[1:-1:2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {words[-1]} END"


@dataclass(frozen=True)
class Cast(Expression):
    """A value brought to another type; text that does not parse becomes null."""

    argument: Expression
    type: pa.DataType

    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def with_children(self, children: Sequence[Expression]) -> Expression:
        (argument,) = children
        return replace(self, argument=argument)

    def evaluate(self, rows: pa.RecordBatch) -> Value:
        return cast(self.argument.evaluate(rows), self.type)

    def __str__(self) -> str:
        return f"CAST({self.argument} AS {sql_name(self.type)})"
