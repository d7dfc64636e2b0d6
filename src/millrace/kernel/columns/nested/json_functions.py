"""JSON in SQL: text into values of a type, values into text, and parts of a text by their path.

Rules:
- Malformed text gives null, for a struct one with null fields, as in Spark, and is counted; with FAILFAST it fails the
  run, which names the row.
- A field of another type than the declared one is null by itself.
- A path is a constant: `$.a.b[0]`, `$['a b']`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RunError
from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.nested.json_text import JsonText
from millrace.kernel.columns.nested.json_values import loads_quoted, of_lines, parsed, spelled
from millrace.kernel.columns.nested.nested_columns import over_columns, struct_of
from millrace.kernel.elements import RESERVED
from millrace.kernel.metrics import MALFORMED

Value = Any  # pa.Array | pa.Scalar

_STEP = re.compile(r"\.([^.\[\]'\"*]+)|\[(\d+)\]|\[['\"]([^'\"]*)['\"]\]")
_SHOWN = 200


def _iso_times(column: Value) -> Value:
    """Times as Spark writes them into JSON, to the millisecond."""
    return pc.strftime(pc.cast(pc.floor_temporal(column, unit="millisecond"), pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%SZ")


_TEXT = JsonText(null_fields=False, time=_iso_times, number=lambda column: cast(column, pa.string()))
_WHOLE_TEXT = JsonText(null_fields=True, time=_iso_times, number=lambda column: cast(column, pa.string()))


def _from_json(text: Value, null: pa.Scalar, strict: pa.Scalar) -> Value:
    """Texts as values of the type of a null."""
    return _counted_from_json(pa.record_batch({}), text, null, strict)


def _counted_from_json(rows: pa.RecordBatch, text: Value, null: pa.Scalar, strict: pa.Scalar) -> Value:
    """Texts, each of one of the rows, as values of the type of a null; counts those that are malformed."""

    def read(texts: pa.Array) -> pa.Array:
        values, faulty = parsed(texts, null.type, cast, forgiving=True)
        count = pc.sum(faulty).as_py() or 0
        if count and strict.as_py():
            raise _malformed(texts, faulty, rows)
        if count:
            MALFORMED.set(MALFORMED.get() + (count if len(texts) == rows.num_rows else count * rows.num_rows))
        if not pa.types.is_struct(null.type):
            return values
        # Malformed text is a struct of nulls, but no text at all is null.
        some = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(texts), ""), False)
        empty = pc.and_(some, values.is_null())
        blank = struct_of([pa.nulls(len(texts), field.type) for field in null.type], null.type)
        return pc.if_else(empty, blank, values)

    found: Value = over_columns(read)(text)
    return found


def _malformed(texts: pa.Array, faulty: pa.Array, rows: pa.RecordBatch) -> RunError:
    first = pc.index(faulty, True).as_py()
    row = rows.slice(first, 1).to_pylist() if len(texts) == rows.num_rows else []
    inside = ", ".join(f"{name} = {value}" for name, value in row[0].items() if name not in RESERVED) if row else ""
    return RunError(
        f"from_json was given a text that is malformed: {_short(texts[first].as_py())}"
        + (f"; the row is {_short(inside)}" if inside else ""),
        hint="Leave the mode FAILFAST out to have null instead, or correct the rows.",
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _to_json(value: Value) -> Value:
    found: Value = over_columns(_TEXT.of)(value)
    return found


def as_json(values: pa.Array) -> pa.Array:
    """Values as JSON text, with fields that are null."""
    return _WHOLE_TEXT.of(values)


def path_steps(path: str) -> list[str | int] | None:
    """The fields and places of a path; None if it is none.

    >>> path_steps("$.a['b c'][0]")
    ['a', 'b c', 0]
    """
    if not path.startswith("$"):
        return None
    found: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        found.append(int(step[2]) if step[2] is not None else step[1] or step[3] or "")
        at = step.end()
    return found


def _json_part(text: Value, path: pa.Scalar, takes: pa.Scalar) -> Value:
    """The part of texts at a path, as text; each distinct text is read once."""
    steps, kind = path_steps(path.as_py()) or [], takes.as_py()

    def read(texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()
        parts = None if kind == "query" else _parts_at_once(encoded.dictionary, steps)
        if parts is None:
            parts = pa.array([_part(each, steps, kind) for each in encoded.dictionary.to_pylist()], pa.string())
        return parts.take(encoded.indices)

    found: Value = over_columns(read)(text)
    return found


def _parts_at_once(texts: pa.Array, steps: list[str | int]) -> pa.Array | None:
    """The parts by Arrow, if all of them are texts, or all are whole numbers; else None."""
    if not steps or not all(isinstance(step, str) for step in steps):
        return None
    first = _part(texts[0].as_py(), steps, "any") if len(texts) else None
    leaves = (pa.string(), pa.int64())
    for leaf in leaves if first is None or not first.isdecimal() else reversed(leaves):
        kind: pa.DataType = leaf
        for step in reversed(steps):
            kind = pa.struct([(str(step), kind)])
        found = of_lines(texts, kind)
        if found is not None:
            for _ in steps:
                found = found.flatten()[0]
            return pc.cast(found, pa.string())
    return None


def _part(text: str, steps: list[str | int], kind: str) -> str | None:
    try:
        found = loads_quoted(text)
    except ValueError:
        return None
    for step in steps:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    if not steps and kind == "any":
        return spelled(found)
    is_nested = isinstance(found, dict | list)
    if found is None or (kind == "value" and is_nested) or (kind == "query" and not is_nested):
        return None
    return spelled(found)


JSON_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "from_json": _from_json,
    "to_json": _to_json,
    "json_part": _json_part,
}

COUNTED: dict[str, Callable[..., Value]] = {"from_json": _counted_from_json}
"""Those that count what they could not read: they take the rows, too."""
