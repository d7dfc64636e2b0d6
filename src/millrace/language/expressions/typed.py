"""Expressions with their type, which is that of their value on no rows, and their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns import casts, decimals
from millrace.kernel.columns import scalar_functions as functions
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal
from millrace.kernel.columns.nested.nested_columns import has_map
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import TIMESTAMP
from millrace.language.expressions.type_advice import for_comparison, for_condition, for_operator, for_value

_ARROW_REFUSALS = (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError)
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())

_READ_WITH_ROWS = {
    *("rlike", "like", "ilike", "split", "regexp_replace", "regexp_extract", "regexp_extract_all", "regexp_count"),
    *("regexp_substr", "regexp_instr", "from_utc_timestamp", "to_utc_timestamp", "convert_timezone", "make_timestamp"),
    *("encode", "decode", "split_part"),
}
"""Functions that read a constant, such as a pattern or a zone, only when there is a row: they are given one."""
_PARTS = {
    pa.string().id: "Only a STRUCT has fields; of a text of JSON write column:field.",
    pa.list_(pa.null()).id: "Only a STRUCT has fields; the first element of an ARRAY is a[0].",
}
"""How a part of a value is written that is no struct, by its type."""
_EXPRESSION = "Check its brackets; a backslash stands before a character that should mean itself."
_SAMPLES = {pa.string(): "", pa.binary(): b"", pa.int32(): 1, TIMESTAMP: 0, pa.decimal128(16, 6): 1}


@dataclass(frozen=True)
class Typed:
    """An expression, its value over no rows (a scalar when it is constant), and its place.

    The binder says the place of what has none, and of errors.
    """

    expression: Expression
    value: Any
    place: Place | None = None

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    @property
    def is_constant(self) -> bool:
        return isinstance(self.value, pa.Scalar)


def column(name: str, kind: pa.DataType, place: Place | None = None) -> Typed:
    """A column by name."""
    return Typed(Column(name), pa.array([], kind), place)


def literal(value: object, kind: pa.DataType, place: Place | None = None) -> Typed:
    """A constant."""
    return Typed(Literal(value, kind), pa.scalar(value, kind), place)


def call(function: str, arguments: Sequence[Typed], place: Place | None = None, form: str = "") -> Typed:
    """A function of the kernel over arguments; refuses types that it cannot take, and says how it is called."""
    expression = Call(function, tuple(each.expression for each in arguments))
    try:
        value = functions.FUNCTIONS[function](*(each.value for each in arguments))
        if function in _READ_WITH_ROWS and all(each.is_constant or each.type in _SAMPLES for each in arguments):
            functions.FUNCTIONS[function](*(each.value if each.is_constant else _sample(each) for each in arguments))
    except AttributeError:
        raise QueryError(
            f'"{function}" takes constants after its first argument',
            hint="Write the pattern, length or number of digits as a literal.",
            place=place,
        ) from None
    except _ARROW_REFUSALS as error:
        raise _not_computable(expression, arguments, place, error, form) from error
    return Typed(expression, value, place)


def _sample(given: Typed) -> pa.Array:
    return pa.array([_SAMPLES[given.type]], given.type)


def _not_computable(
    expression: Call, arguments: Sequence[Typed], place: Place | None, error: Exception, form: str
) -> QueryError:
    # What the kernel refuses is an ArrowInvalid in our words; other errors are about code.
    reason = str(error).split("\n")[0] if isinstance(error, pa.ArrowInvalid) else ""
    if reason and expression.function in _READ_WITH_ROWS:
        about = (each.place for each in arguments if each.is_constant and str(each.value) in reason)
        hint = _EXPRESSION if "regular expression" in reason else form or "Write another constant."
        return QueryError(reason, hint=hint, place=next(about, None) or place)
    if reason and all(each.is_constant for each in arguments):
        return QueryError(f'"{expression}" has no value: {reason}', hint="Write another constant.", place=place)
    kinds = ", ".join(sql_name(each.type) for each in arguments)
    fact = f'"{expression}" cannot be computed for {kinds}'
    return QueryError(fact, hint=form or for_operator(expression.function, arguments), place=place)


def text(given: Typed, what: str) -> Typed:
    """A value that is text; refuses any other type."""
    if pa.types.is_string(given.type) or pa.types.is_binary(given.type) or pa.types.is_null(given.type):
        return given
    quoted = f"'{given.expression}'" if given.is_constant else f"CAST({given.expression} AS STRING)"
    if pa.types.is_list(given.type):
        quoted = f"exists({given.expression}, x -> x LIKE 'a%'), or take an element: {given.expression}[0]"
    fact = f'{what} takes text, and "{given.expression}" is {sql_name(given.type)}'
    raise QueryError(fact, hint=f"Write {quoted}.", place=given.place)


def field(given: Typed, name: str) -> Typed:
    """A field of a struct, or of each struct of an array."""
    inner = given.type.value_type if pa.types.is_list(given.type) else given.type
    if pa.types.is_map(given.type):
        return element(given, literal(name, pa.string()))
    if not pa.types.is_struct(inner):
        raise QueryError(
            f'"{_dotted(given.expression)}" is {sql_name(given.type)}, and has no field "{name}"',
            hint=_PARTS.get(given.type.id, "Only a STRUCT has fields."),
            place=given.place,
        )
    names = [each.name for each in inner]
    found = next((each for each in (name, *names) if each in names and each.lower() == name.lower()), None)
    if found is None:
        raise QueryError(
            f'"{_dotted(given.expression)}" has no field "{name}"',
            hint=f"{did_you_mean(name, names)}The fields are {listed(names)}.",
            place=given.place,
        )
    return call("field", [given, literal(found, pa.string())], given.place)


def _dotted(expression: Expression) -> str:
    """An expression as it is written: `a.b` for a field."""
    if isinstance(expression, Call) and expression.function == "field":
        inner, name = expression.arguments
        return f"{_dotted(inner)}.{name.value if isinstance(name, Literal) else name}"
    return str(expression)


def element(given: Typed, index: Typed) -> Typed:
    """The value at a place of an array, or of a key of a map."""
    if pa.types.is_map(given.type):
        return call("of_key", [given, cast(index, given.type.key_type)], given.place)
    if not pa.types.is_list(given.type):
        raise QueryError(
            f'"{given.expression}" is {sql_name(given.type)}, and has no elements',
            hint=f"A field of a STRUCT is written with a dot: {given.expression}.field."
            if pa.types.is_struct(given.type)
            else "Brackets follow an ARRAY or a MAP: a[0], m['key']. A window stands in brackets after a stream.",
            place=given.place,
        )
    if not pa.types.is_integer(index.type):
        raise QueryError(
            f"the place in an array is {sql_name(index.type)}, not a whole number",
            hint="The first element is a[0].",
            place=index.place,
        )
    return call("element", [given, index], given.place)


def key(given: Typed) -> Typed:
    """A value as it is compared: an array or a struct as a text that is the same where the value is."""
    if not pa.types.is_nested(given.type):
        return given
    if has_map(given.type):
        raise QueryError(
            f'"{given.expression}" is {sql_name(given.type)}, and a MAP can neither be compared nor be a key',
            hint="Take the values that you need out of it: m['key'].",
            place=given.place,
        )
    return call("encoded", [given], given.place)


def ordered(given: Typed) -> Typed:
    """A value that is sorted by; refuses a map, which has no order."""
    if has_map(given.type):
        raise QueryError(
            f'"{given.expression}" is {sql_name(given.type)}, and a MAP has no order',
            hint="Take the values that you need out of it: m['key'].",
            place=given.place,
        )
    return given


def of_key(encoded: Expression, kind: pa.DataType, place: Place | None) -> Typed:
    """The value of a key that `key` has made, if its type is nested."""
    if not pa.types.is_nested(kind):
        return Typed(encoded, pa.array([], kind), place)
    return Typed(Call("decoded", (encoded, Literal(None, kind))), pa.array([], kind), place)


def cast(given: Typed, kind: pa.DataType) -> Typed:
    """The value brought to a type; itself when it has it."""
    if given.type == kind:
        return given
    if pa.types.is_null(given.type) and isinstance(given.expression, Literal):
        return literal(None, kind, given.place)
    if (wider := _wider_literal(given, kind)) is not None:
        return wider
    try:
        value = casts.cast(given.value, kind)
    except _ARROW_REFUSALS as error:
        if _is_text_literal(given):
            raise _no_such_value(given, kind) from error
        raise QueryError(
            f"{sql_name(given.type)} cannot be cast to {sql_name(kind)}",
            hint="Take a value out of it first: a[0], s.field, m['key']; size(a) counts."
            if pa.types.is_nested(given.type)
            else "Cast by way of STRING or BIGINT if that is what you mean.",
            place=given.place,
        ) from error
    return Typed(Cast(given.expression, kind), value, given.place)


def brought(given: Typed, kind: pa.DataType) -> Typed:
    """An argument cast to the type that a user's function or aggregate takes; refuses a cast that loses something."""
    widens = common_type([given.type, kind]) == kind
    if widens or (pa.types.is_floating(kind) and is_number(given.type)):
        return cast(given, kind)
    raise QueryError(
        f"the argument is {sql_name(given.type)}, not {sql_name(kind)}",
        hint=f"Bring it to the type with CAST({given.expression} AS {sql_name(kind)}).",
        place=given.place,
    )


def _wider_literal(given: Typed, kind: pa.DataType) -> Typed | None:
    """A number as a literal of a wider type, so that it is not cast again for every batch."""
    value = given.expression.value if isinstance(given.expression, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if pa.types.is_floating(kind) and kind == pa.float64():
        return literal(float(value), kind, given.place)
    if kind == pa.int64() and isinstance(value, int) and pa.types.is_integer(given.type):
        return literal(value, kind, given.place)
    if pa.types.is_decimal(kind) and is_number(given.type):
        return literal(casts.cast(given.value, kind).as_py(), kind, given.place)
    return None


def boolean(given: Typed, what: str) -> Typed:
    """A condition; refuses any other type."""
    if pa.types.is_boolean(given.type) or pa.types.is_null(given.type):
        return cast(given, pa.bool_())
    raise QueryError(
        f"{what} is {sql_name(given.type)}, not BOOLEAN",
        hint=for_condition(given),
        place=given.place,
    )


def unify(values: Sequence[Typed], place: Place | None = None) -> list[Typed]:
    """The values brought to one type; text literals and nulls take the type of the others."""
    plain = [each for each in values if not _is_text_literal(each)]
    target = common_type([each.type for each in plain])
    if target is None or pa.types.is_null(target):
        target = common_type([each.type for each in values])
    if target is None:
        kinds = " and ".join(dict.fromkeys(sql_name(each.type) for each in values))
        raise QueryError(f"{kinds} have no common type", hint=for_comparison(values), place=place)
    return [literal_of(each, target) if _is_text_literal(each) else cast(each, target) for each in values]


def _is_text_literal(given: Typed) -> bool:
    return isinstance(given.expression, Literal) and pa.types.is_string(given.type)


def literal_of(given: Typed, target: pa.DataType) -> Typed:
    """A constant brought to a type; refuses text that is no such value."""
    found = cast(given, target)
    if found.is_constant and not found.value.is_valid:
        raise _no_such_value(given, target)
    return found


def type_of_digits(given: Typed, kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds a constant text as it is written; `kind` if there is none."""
    try:
        number = Decimal(str(given.value.as_py()).strip())
        return decimals.type_of_number(number) if number.is_finite() else kind
    except (ArithmeticError, ValueError):
        return kind


def _no_such_value(given: Typed, kind: pa.DataType) -> QueryError:
    name = sql_name(kind)
    return QueryError(f"{given.expression} is not a valid {name}", hint=for_value(kind), place=given.place)


def computable(operands: Sequence[Typed]) -> list[Typed]:
    """Numbers of which one is a decimal brought to what arithmetic takes: all decimals, or all doubles."""
    kinds = [each.type for each in operands]
    if not any(map(pa.types.is_decimal, kinds)) or not all(map(is_number, kinds)):
        return list(operands)
    if any(map(pa.types.is_floating, kinds)):
        return [cast(each, pa.float64()) for each in operands]
    return [cast(each, _decimal_type(each)) if pa.types.is_integer(each.type) else each for each in operands]


def _decimal_type(whole: Typed) -> pa.DataType:
    """The decimal type of a whole number: of a literal as many digits as it has."""
    value = whole.expression.value if isinstance(whole.expression, Literal) else None
    return decimals.type_of_number(value) if isinstance(value, int) else decimals.type_of_integers(whole.type)


def is_number(kind: pa.DataType) -> bool:
    """True if a type is a number."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type that all can be brought to without loss of meaning; None when there is none."""
    different = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    if len(different) <= 1:
        return different[0] if different else pa.null() if kinds else None
    if all(pa.types.is_integer(kind) for kind in different):
        return max(different, key=_INTEGERS.index)
    if any(pa.types.is_floating(kind) for kind in different) and all(is_number(kind) for kind in different):
        return pa.float64()
    if all(is_number(kind) for kind in different):
        whole = [decimals.type_of_integers(kind) if pa.types.is_integer(kind) else kind for kind in different]
        return decimals.common_decimal(whole)
    if all(pa.types.is_nested(kind) for kind in different):
        return _common_nested(different)
    if all(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in different):
        return TIMESTAMP
    return None


def _common_nested(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The common type of arrays, of structs of as many fields, or of maps; None when there is none."""
    first = kinds[0]
    alike = all(each.id == first.id and each.num_fields == first.num_fields for each in kinds)
    parts = [
        common_type([each.field(place).type for each in kinds]) for place in range(first.num_fields if alike else 0)
    ]
    if not alike or any(each is None for each in parts):
        return None
    if pa.types.is_struct(first):
        return pa.struct([(each.name, part) for each, part in zip(first, parts, strict=True)])
    if pa.types.is_map(first):
        return pa.map_(first.key_type, first.item_type) if len(set(kinds)) == 1 else None
    return pa.list_(parts[0])
