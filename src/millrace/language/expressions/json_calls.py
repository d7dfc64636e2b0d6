"""Calls of JSON functions: a schema, a path and a mode are constants, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.kernel.columns.expressions import Literal
from millrace.kernel.columns.nested.json_functions import path_steps
from millrace.kernel.columns.sql_types import read_columns, read_type, sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.typed import Typed

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

_PARTS = {"get_json_object": "any", "json_value": "value", "json_query": "query"}
JSON_CALLS = ("from_json", "to_json", *_PARTS)
_SCHEMA_HINT = "Write from_json(column, 'a INT, b ARRAY<STRING>')."
_PATH_HINT = "Write a path such as '$.a.b[0]'; a path with * is not supported."
_MODE_HINT = "Write from_json(column, 'a INT', map('mode', 'FAILFAST'))."


def json_call(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """A call of a JSON function."""
    least, most = {"from_json": (2, 3), "to_json": (1, 1)}.get(name, (2, 2))
    if not least <= len(given) <= most:
        hint = {"from_json": _SCHEMA_HINT, "to_json": "Write to_json(struct(a, b))."}.get(name, _PATH_HINT)
        raise QueryError(f'"{name}" takes {least} argument{"" if least == 1 else "s"}, not {len(given)}', hint=hint)
    bound = [binder.bind(each) for each in given]
    if name == "to_json":
        if not pa.types.is_nested(bound[0].type):
            fact = f"to_json takes a STRUCT, an ARRAY or a MAP, not {sql_name(bound[0].type)}"
            raise QueryError(fact, hint="Write to_json(struct(a, b)).", place=bound[0].place)
        return typed.call("to_json", bound)
    if name == "from_json":
        strict = typed.literal(len(given) == 3 and _mode(bound[2]) == "FAILFAST", pa.bool_())
        return typed.call("from_json", [_text(bound[0]), typed.literal(None, _schema(bound[1])), strict])
    return part(bound[0], _constant(bound[1]), _PARTS[name], bound[1].place)


def part(text: Typed, path: str | None, takes: str, place: Place | None = None) -> Typed:
    """The part of a JSON text at a path, which stands at a place of its own."""
    if path is None or path_steps(path) is None:
        raise QueryError(f'"{path}" is not a path of JSON', hint=_PATH_HINT, place=place or text.place)
    return typed.call("json_part", [_text(text), typed.literal(path, pa.string()), typed.literal(takes, pa.string())])


def _text(given: Typed) -> Typed:
    if not pa.types.is_string(given.type):
        fact = f'"{given.expression}" is {sql_name(given.type)}, not a text of JSON'
        instead = "A column that holds JSON is declared as STRING."
        hint = f"Write {given.expression}.field." if pa.types.is_struct(given.type) else instead
        raise QueryError(fact, hint=hint, place=given.place)
    return given


def _constant(given: Typed) -> str | None:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    return value if isinstance(value, str) else None


def _schema(given: Typed) -> pa.DataType:
    text = _constant(given) or ""
    kind = read_type(text) or read_columns(text)
    if kind is None or not pa.types.is_nested(kind) or not kind.num_fields:
        raise QueryError(f"{given.expression} is not a schema", hint=_SCHEMA_HINT, place=given.place)
    return kind


def _mode(given: Typed) -> str:
    options = dict(given.value.as_py()) if given.is_constant and pa.types.is_map(given.type) else {}
    mode = str(options.get("mode", "")).upper()
    if list(options) != ["mode"] or mode not in ("PERMISSIVE", "FAILFAST"):
        fact = "from_json takes one option, the mode PERMISSIVE or FAILFAST"
        raise QueryError(fact, hint=_MODE_HINT, place=given.place)
    return mode
