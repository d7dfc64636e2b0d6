"""Calls that are bound in a way of their own: choices, casts, structs and maps, functions of several types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Literal
from millrace.kernel.columns.sql_types import read_type, sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.argument_types import arguments_of
from millrace.language.expressions.json_calls import JSON_CALLS, json_call
from millrace.language.expressions.lambda_calls import LAMBDA_CALLS, lambda_call
from millrace.language.expressions.time_calls import TIME_CALLS
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

_CASTS = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary"),
    *("date", "timestamp"),
)
Bind = Callable[["ExpressionBinder", str, Sequence[exp.Expr]], Typed]


def _cast(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    return typed.cast(binder.bind(given[0]), read_type(name))


def _if(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    condition = binder.condition(given[0], "the condition of IF")
    values = [binder.bind(each) for each in given[1:]]
    return binder.chosen([condition], values if len(values) == 2 else [*values, typed.literal(None, pa.null())])


def _nvl2(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    condition = typed.call("is_not_null", [binder.bind(given[0])])
    return binder.chosen([condition], [binder.bind(each) for each in given[1:]])


def _typeof(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    return typed.literal(
        sql_name(binder.bind(given[0]).type).lower().replace(", ", ",").replace(": ", ":"), pa.string()
    )


def _concat(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """Arrays, bytes or texts one after the other."""
    values = [binder.bind(each) for each in given]
    kinds = [each.type for each in values if not pa.types.is_null(each.type)]
    if kinds and all(map(pa.types.is_list, kinds)):
        return typed.call("concat_arrays", typed.unify(values))
    if kinds and all(map(pa.types.is_binary, kinds)) and len(values) > 1:
        return typed.call("concat_bytes", [typed.cast(each, pa.binary()) for each in values])
    if len(values) == 1:
        return typed.cast(values[0], pa.string())
    return typed.call("concat", values)


def _reverse(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    value = binder.bind(given[0])
    if pa.types.is_list(value.type):
        return typed.call("reverse_array", [value])
    return typed.call("reverse_text", [typed.cast(value, pa.string())])


def _decode(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    if len(given) == 2:
        value, charset = (binder.bind(each) for each in given)
        return typed.call("decode", [typed.cast(value, pa.binary()), charset])
    pairs = [(given[place], given[place + 1]) for place in range(1, len(given) - 1, 2)]
    conditions = [binder.equal(given[0], searched) for searched, _ in pairs]
    last = binder.bind(given[-1]) if len(given) % 2 == 0 else typed.literal(None, pa.null())
    return binder.chosen(conditions, [*(binder.bind(result) for _, result in pairs), last])


def _elt(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    place, *values = (binder.bind(each) for each in given)
    number = typed.cast(place, pa.int32())
    conditions = [typed.call("=", [number, typed.literal(at, pa.int32())]) for at in range(1, len(values) + 1)]
    kind = values[0].type if all(pa.types.is_binary(each.type) for each in values) else pa.string()
    return binder.chosen(conditions, [*(typed.cast(each, kind) for each in values), typed.literal(None, pa.null())])


def _element_at(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    value, place = (binder.bind(each) for each in given)
    if pa.types.is_map(value.type):
        return typed.element(value, place)
    if not pa.types.is_list(value.type):
        fact = f'"{value.expression}" is {sql_name(value.type)}, and has no elements'
        raise QueryError(fact, hint="element_at takes an ARRAY or a MAP.", place=value.place)
    return typed.call(name, [value, typed.cast(place, pa.int32())])


def _log(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    arguments = arguments_of(FUNCTIONS["log"], [binder.bind(each) for each in given])
    return typed.call("ln" if len(arguments) == 1 else "log", arguments)


def _trim(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """`ltrim` and `rtrim`: of two arguments the characters come first."""
    return typed.call(name, arguments_of(FUNCTIONS[name], [binder.bind(each) for each in reversed(given)]))


def _locate(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """`locate(part, text)`, or `position(part IN text)`."""
    if len(given) == 1 and isinstance(given[0], exp.In) and given[0].args.get("field") is not None:
        given = [given[0].this, given[0].args["field"]]
    if len(given) == 1:
        raise QueryError(f'"{name}" takes a part and a text', hint="Write locate('part', text).")
    return typed.call("locate", arguments_of(FUNCTIONS["locate"], [binder.bind(each) for each in given]))


def _hex(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    value = binder.bind(given[0])
    if typed.is_number(value.type):
        return typed.call("hex", [typed.cast(value, pa.int64())])
    return typed.call("hex", [value if pa.types.is_binary(value.type) else typed.cast(value, pa.string())])


def _attempted(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    arguments = arguments_of(FUNCTIONS[name], [binder.bind(each) for each in given])
    return typed.call(name, typed.computable(arguments))


def _shift(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    number, count = arguments_of(FUNCTIONS[name], [binder.bind(each) for each in given])
    return typed.call(name, [number if number.type == pa.int64() else typed.cast(number, pa.int32()), count])


def _zip(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    arrays = arguments_of(FUNCTIONS[name], [binder.bind(each) for each in given])
    names = [each.name if isinstance(each, exp.Column | exp.Dot) else str(place) for place, each in enumerate(given)]
    fields = pa.struct([(field, pa.null()) for field in names])
    return typed.call(name, [typed.literal(None, fields), *arrays])


def _sequence(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    values = [binder.bind(each) for each in given]
    step = values[2:]
    if step and not pa.types.is_duration(step[0].type):
        return typed.call(name, typed.unify(values))
    return typed.call(name, [*typed.unify(values[:2]), *step])


def _array(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    if not given:
        return typed.literal((), pa.list_(pa.null()))
    return typed.call(name, typed.unify([binder.bind(each) for each in given]))


def _with_key(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    maps, key = arguments_of(FUNCTIONS[name], [binder.bind(each) for each in given])
    return typed.call(name, [maps, typed.cast(key, maps.type.key_type)])


def _made(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """A struct or a map of values."""
    if name == "struct":
        given = [column for each in given for column in _starred(binder, each)]
        names = [_field_name(each, place) for place, each in enumerate(given, 1)]
        plain = [each.this if isinstance(each, exp.Alias) else each for each in given]
        pairs = zip(names, plain, strict=True)
        arguments = [part for named, each in pairs for part in (typed.literal(named, pa.string()), binder.bind(each))]
    else:
        arguments = [binder.bind(each) for each in given]
    if not arguments or len(arguments) % 2:
        hint = {"struct": "Write struct(a, b AS name).", "map": "Write map('key', value, ...)."}
        raise QueryError(f'"{name}" takes pairs', hint=hint.get(name, "Write named_struct('name', value, ...)."))
    if name == "map":
        keys, values = typed.unify(arguments[::2]), typed.unify(arguments[1::2])
        return typed.call("map", [each for pair in zip(keys, values, strict=True) for each in pair])
    for each in arguments[::2]:
        if not isinstance(each.expression, Literal) or not isinstance(each.expression.value, str):
            raise QueryError(
                "the name of a field is a text", hint="Write named_struct('name', value).", place=each.place
            )
    return typed.call("named_struct", arguments)


def _starred(binder: ExpressionBinder, node: exp.Expr) -> list[exp.Expr]:
    """The columns that `*` or `input.*` stands for; any other argument alone."""
    is_star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
    return binder.scope.written(node, place_of(node)) if is_star else [node]


def _field_name(node: exp.Expr, place: int) -> str:
    named = isinstance(node, exp.Alias | exp.Column | exp.Dot)
    return (node.alias if isinstance(node, exp.Alias) else node.name) if named else f"col{place}"


SPECIAL_CALLS: dict[str, Bind] = {
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(JSON_CALLS, json_call),
    **dict.fromkeys(("struct", "named_struct", "map"), _made),
    "if": _if,
    "nvl2": _nvl2,
    "typeof": _typeof,
    "concat": _concat,
    **dict.fromkeys(LAMBDA_CALLS, lambda_call),
    **TIME_CALLS,
    "array": _array,
    "reverse": _reverse,
    "decode": _decode,
    "elt": _elt,
    **dict.fromkeys(("element_at", "try_element_at"), _element_at),
    "log": _log,
    **dict.fromkeys(("ltrim", "rtrim"), _trim),
    "locate": _locate,
    "hex": _hex,
    **dict.fromkeys(("try_add", "try_subtract", "try_multiply", "pmod"), _attempted),
    **dict.fromkeys(("shiftleft", "shiftright", "shiftrightunsigned"), _shift),
    "arrays_zip": _zip,
    "sequence": _sequence,
    "map_contains_key": _with_key,
}
"""Calls by the name of their function, which may be written otherwise."""
