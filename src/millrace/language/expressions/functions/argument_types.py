"""Arguments of a call brought to the types that a function takes, as Spark casts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from millrace.errors import QueryError
from millrace.kernel.columns.sql_types import SQL_TYPES, sql_name
from millrace.kernel.elements import TIMESTAMP
from millrace.language.expressions import typed
from millrace.language.expressions.functions.declaration import Function
from millrace.language.expressions.typed import Typed

_SECONDS = pa.decimal128(16, 6)
_NESTED = {"ARRAY": pa.types.is_list, "MAP": pa.types.is_map, "STRUCT": pa.types.is_struct}
_EMPTY = {
    "ARRAY": pa.list_(pa.null()), "TEXT": pa.string(), "NUMBER": pa.float64(), "WHOLE": pa.int32(), "TIME": TIMESTAMP,
}  # fmt: skip
"""What NULL is where such a value is expected."""


def arguments_of(function: Function, given: Sequence[Typed]) -> list[Typed]:
    """The arguments of a call as a function takes them; refuses those that it does not take."""
    kinds = function.kinds(len(given))
    numbers = [each.type for each, kind in zip(given, kinds, strict=True) if kind == "NUMBER"]
    beside = next((each for each in numbers if not pa.types.is_null(each)), None)
    if beside is not None and pa.null() in numbers:
        # NULL beside a number is one of its type.
        given = [typed.cast(each, beside) if pa.types.is_null(each.type) else each for each in given]
    found = [_brought(each, kind, function) for each, kind in zip(given, kinds, strict=True)]
    return _of_one_type(found, kinds) if {"T", "ARRAY<T>"} & set(kinds) else found


def _brought(given: Typed, kind: str, function: Function) -> Typed:
    if kind in ("ANY", "T", "UNIT", "FUNCTION"):
        return given
    if kind == "DECIMAL":
        return _cast(given, _SECONDS, function)
    if kind in SQL_TYPES:
        return _cast(given, SQL_TYPES[kind], function)
    if pa.types.is_null(given.type) and kind in _EMPTY:
        return typed.cast(given, _EMPTY[kind])
    number = typed.is_number(given.type) or pa.types.is_duration(given.type)
    if (kind == "NUMBER" and number) or (kind == "WHOLE" and pa.types.is_integer(given.type)):
        return given
    if kind == "TEXT":
        return given if pa.types.is_binary(given.type) else _cast(given, pa.string(), function)
    if kind in ("TIME", "DAY"):
        is_time = pa.types.is_date(given.type) or pa.types.is_timestamp(given.type)
        return given if is_time else _cast(given, TIMESTAMP if kind == "TIME" else pa.date32(), function)
    if kind in ("NUMBER", "WHOLE") and _is_plain(given) and not pa.types.is_temporal(given.type):
        return _cast(given, _EMPTY[kind], function)
    if kind.partition("<")[0] in _NESTED and _NESTED[kind.partition("<")[0]](given.type):
        return given
    raise _refused(given, kind, function)


def _is_plain(given: Typed) -> bool:
    return not (pa.types.is_nested(given.type) or pa.types.is_binary(given.type))


def _cast(given: Typed, kind: pa.DataType, function: Function) -> Typed:
    """A value cast as Spark does it unasked: not from nested values, nor from numbers to times."""
    if given.type == kind or pa.types.is_null(given.type):
        return typed.cast(given, kind)
    from_number = typed.is_number(given.type) or pa.types.is_boolean(given.type)
    of_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    allowed = {
        "times": (pa.types.is_date(kind) or pa.types.is_timestamp(kind))
        and (pa.types.is_temporal(given.type) or pa.types.is_string(given.type)),
        "text": of_text and not pa.types.is_nested(given.type),
        "numbers": typed.is_number(kind) and (typed.is_number(given.type) or pa.types.is_string(given.type)),
        "boolean": pa.types.is_boolean(kind) and (from_number or pa.types.is_string(given.type)),
    }
    found = typed.cast(given, kind)
    is_no_number = typed.is_number(kind) and given.is_constant and given.value.is_valid and not found.value.is_valid
    if is_no_number or not any(allowed.values()):
        raise _refused(given, sql_name(kind), function)
    return replace(found, place=given.place)


def _refused(given: Typed, kind: str, function: Function) -> QueryError:
    return QueryError(
        f'"{given.expression}" is {sql_name(given.type)}, and "{function.name}" takes {_WORDS.get(kind, kind)} there',
        hint=function.form,
        place=given.place,
    )


_WORDS = {
    "NUMBER": "a number",
    "WHOLE": "a whole number",
    "TEXT": "STRING or BINARY",
    "ARRAY<T>": "an ARRAY",
    "TIME": "a time",
    "DAY": "a time",
}


def _of_one_type(given: list[Typed], kinds: Sequence[str]) -> list[Typed]:
    """The values T, and the elements of ARRAY<T>, in their common type."""
    parts = [_element(each) if kind == "ARRAY<T>" else each for each, kind in zip(given, kinds, strict=True)]
    alike = iter(typed.unify([each for each, kind in zip(parts, kinds, strict=True) if "T" in (kind, kind[6:-1])]))
    found = []
    for each, kind in zip(given, kinds, strict=True):
        if kind == "T":
            found.append(next(alike))
        elif kind == "ARRAY<T>":
            found.append(typed.cast(each, pa.list_(next(alike).type)))
        else:
            found.append(each)
    return found


def _element(given: Typed) -> Typed:
    return Typed(given.expression, pa.array([], given.type.value_type), given.place)
