"""What to write where the types of values do not fit: hints for operators, comparisons and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from millrace.kernel.columns.sql_types import sql_name

if TYPE_CHECKING:
    from millrace.language.expressions.typed import Typed

_ONE_TYPE = "Bring them to one type with CAST(... AS type)."
_PARTS = "Take a value out of it first: a[0] of an array, s.field of a struct, m['key'] of a map."


def for_operator(operator: str, given: Sequence[Typed]) -> str:
    """What to write where an operator does not take its operands."""
    times, texts, nested = _those(given, _is_time), _those(given, pa.types.is_string), _those(given, pa.types.is_nested)
    if nested:
        return _PARTS
    if len(texts) == len(given) == 2 and operator == "+":
        return f"Text is put together with ||: {given[0].expression} || {given[1].expression}."
    if len(times) == len(given) == 2:
        return "Two times are subtracted, which gives the interval between them; to a time an INTERVAL is added."
    if times and operator in ("+", "-"):
        return _moved(times[0], next(each for each in given if each is not times[0]), operator)
    if texts:
        return f"If the text holds numbers, write CAST({texts[0].expression} AS DOUBLE)."
    if flags := _those(given, pa.types.is_boolean):
        return f"Write CAST({flags[0].expression} AS INT) if you mean 1 and 0."
    return "Bring the arguments to types that fit with CAST(... AS type)."


def _moved(time: Typed, by: Typed, operator: str) -> str:
    """How a time is moved by a number, or by a text that was meant as an interval."""
    if pa.types.is_string(by.type):
        length = f"INTERVAL {by.expression}" if by.is_constant else f"CAST({by.expression} AS INTERVAL DAY TO SECOND)"
        return f"A length of time is written with INTERVAL: {time.expression} {operator} {length}."
    if by.is_constant:
        return f"Say of which unit the number is: {time.expression} {operator} INTERVAL {by.expression} SECONDS."
    return f"Say of which unit the number is: {time.expression} {operator} {by.expression} * INTERVAL 1 SECOND."


def for_comparison(given: Sequence[Typed]) -> str:
    """What to write where values have no common type."""
    texts, times = _those(given, pa.types.is_string), _those(given, _is_time)
    others = [each for each in given if each not in texts and not pa.types.is_null(each.type)]
    arrays = _those(given, pa.types.is_list)
    if arrays and len(arrays) < len(given):
        element = next(each for each in given if each not in arrays)
        return f"Write array_contains({arrays[0].expression}, {element.expression}), or take an element: a[0]."
    if _those(given, pa.types.is_nested):
        return _PARTS
    if texts and others and all(each.is_constant for each in others):
        number = f"CAST({texts[0].expression} AS DOUBLE)"
        return f"Write text in quotes: '{others[0].expression}'; or make numbers of it: {number}."
    if texts and others:
        return f"Write CAST({texts[0].expression} AS {sql_name(others[0].type)}), or the other one AS STRING."
    if lengths := _those(given, pa.types.is_duration):
        plain = next((str(each.expression) for each in given if each not in lengths), "5")
        return f"A length of time is compared with one: INTERVAL {plain} SECONDS."
    flags = [each for each in _those(given, pa.types.is_boolean) if not each.is_constant]
    if flags:
        return f"A BOOLEAN stands alone as a condition: {flags[0].expression}, or NOT {flags[0].expression}."
    if _those(given, pa.types.is_boolean):
        return "Compare a number with a number, for example column > 0."
    if times and others:
        return "Write a time in quotes, '2024-05-01 12:30:00'; timestamp_seconds(n) makes one of a number."
    return _ONE_TYPE


def for_value(kind: pa.DataType) -> str:
    """How a value of a type is written, where a text is none."""
    if _is_time(kind):
        return "Times are written '2024-05-01 12:30:00', dates '2024-05-01'."
    if pa.types.is_duration(kind):
        return "A length of time is written INTERVAL '1 minute', or INTERVAL 1 MINUTE."
    if pa.types.is_boolean(kind):
        return "Write TRUE or FALSE, or the column alone as a condition."
    if pa.types.is_list(kind):
        return "Write array_contains(column, value), or take an element: a[0]."
    if pa.types.is_nested(kind):
        return _PARTS
    return f"Write a value of type {sql_name(kind)}, or bring the other side to text with CAST(... AS STRING)."


def for_condition(given: Typed) -> str:
    """How a value becomes a condition."""
    if pa.types.is_string(given.type):
        return f"Compare it with something: {given.expression} = 'text', or {given.expression} IS NOT NULL."
    if _is_time(given.type) or pa.types.is_nested(given.type):
        return f"Compare it with something, or write {given.expression} IS NOT NULL."
    return "Compare it with something, for example > 0."


def _those(given: Sequence[Typed], holds: Callable[[pa.DataType], bool]) -> list[Typed]:
    return [each for each in given if holds(each.type)]


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
