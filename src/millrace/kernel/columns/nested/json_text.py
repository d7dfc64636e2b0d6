"""Values as JSON text, made column by column."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.interval_values import interval_text

Value = Any  # pa.Array
_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_CONTROL_CHARACTERS = [chr(code) for code in range(0x20)]


class JsonText:
    """How values are written: null fields left out or not, and how times and fractions are spelled."""

    def __init__(
        self, *, null_fields: bool, time: Callable[[Value], Value], number: Callable[[Value], Value] | None = None
    ) -> None:
        self.null_fields = null_fields
        self.time = time
        self.number = number

    def of(self, column: Value) -> Value:
        """A column's values as JSON; null stays null."""
        kind = column.type
        if pa.types.is_struct(kind):
            return self._objects(column)
        if pa.types.is_map(kind):
            return self._maps(column)
        if pa.types.is_list(kind):
            return _brackets("[", self._joined(column, self.of(column.flatten())), "]")
        if pa.types.is_timestamp(kind):
            return quoted(self.time(column))
        if pa.types.is_duration(kind):
            return quoted(interval_text(column))
        if pa.types.is_floating(kind):
            return _numbers(column, self.number)
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
            return pc.cast(column, pa.string())
        return quoted(base64_text(column) if pa.types.is_binary(kind) else pc.cast(column, pa.string()))

    def _objects(self, column: Value) -> Value:
        names = [field.name for field in column.type]
        whole = self.object_of(names, column.flatten()) if names else "{}"
        return pc.if_else(column.is_valid(), whole, pa.scalar(None, pa.string()))

    def object_of(self, names: list[str], columns: list[Value], end: str = "") -> Value:
        """An object per row of some columns, and what ends it."""
        keys = [quoted(pa.scalar(name, pa.string())).as_py() for name in names]
        texts = [self.of(column) for column in columns]
        if self.null_fields:
            parts = [
                part for key, text in zip(keys, texts, strict=True) for part in (f",{key}:", pc.fill_null(text, "null"))
            ]
            return pc.binary_join_element_wise("{" + parts[0][1:], *parts[1:], "}" + end, "")
        fields = [
            pc.fill_null(pc.binary_join_element_wise(f",{key}:", text, ""), "")
            for key, text in zip(keys, texts, strict=True)
        ]
        inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*fields, ""), 1)
        return _brackets("{", inside, "}" + end)

    def _maps(self, column: Value) -> Value:
        whole = column.filter(column.is_valid())
        first, last = (int(whole.offsets[place].as_py()) for place in (0, -1))
        keys, items = (part.slice(first, last - first) for part in (whole.keys, whole.items))
        names = quoted(pc.cast(keys, pa.string()))
        entries = pc.binary_join_element_wise(names, pc.fill_null(self.of(items), "null"), ":")
        return _brackets("{", self._joined(column, entries), "}")

    def _joined(self, lists: Value, texts: Value) -> Value:
        """The texts of each list with commas between them."""
        filled = pc.fill_null(texts, "null")
        lengths = pc.list_value_length(lists) if pa.types.is_list(lists.type) else _map_lengths(lists)
        offsets = pc.cumulative_sum(
            pa.concat_arrays([pa.array([0], pa.int64()), lengths.fill_null(0).cast(pa.int64())])
        )
        made = pa.ListArray.from_arrays(offsets.cast(pa.int32()), filled, mask=lists.is_null())
        return pc.binary_join(made, ",")


def _map_lengths(column: Value) -> Value:
    offsets = column.offsets
    return pc.subtract(offsets.slice(1), offsets.slice(0, len(offsets) - 1)).cast(pa.int64())


def _brackets(opening: str, inside: Value, closing: str) -> Value:
    return pc.binary_join_element_wise(opening, inside, closing, "")


def _numbers(column: Value, number: Callable[[Value], Value] | None) -> Value:
    """Numbers as JSON; those that JSON does not have are spelled as in Python, or with `number` quoted as in Spark."""
    if number is not None:
        text = number(column)
        return pc.if_else(pc.is_finite(column), text, quoted(text))
    text = pc.cast(column, pa.string())
    infinite = pc.if_else(pc.greater(column, 0), "Infinity", "-Infinity")
    return pc.if_else(pc.is_finite(column), text, pc.if_else(pc.is_nan(column), "NaN", infinite))


def quoted(text: Value) -> Value:
    """Text as JSON strings."""
    escaped, given = text, _array(text)
    if pc.any(pc.match_substring_regex(given, r'["\\\x00-\x1f]')).as_py():
        escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if escaped is not text and pc.any(pc.match_substring_regex(given, r"[\x00-\x1f]")).as_py():
        for character in _CONTROL_CHARACTERS:
            spelled = _SHORT_ESCAPES.get(character, f"\\u{ord(character):04x}")
            escaped = pc.replace_substring(escaped, character, spelled)
    return pc.binary_join_element_wise('"', escaped, '"', "")


def base64_text(column: Value) -> Value:
    """Bytes in base 64."""
    return pa.array(
        [None if each is None else base64.b64encode(each).decode() for each in column.to_pylist()], pa.string()
    )


def _array(text: Value) -> Value:
    return pa.array([text.as_py()], pa.string()) if isinstance(text, pa.Scalar) else text
