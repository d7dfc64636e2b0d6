"""Objects and arrays of JSON that are read as text: as they are written, to the letter.

Writing them again would change them: `1.50` would be `1.5`, and a number of many digits would lose some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

_BLANK = re.compile(r"[ \t\n\r]*")
_SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(parse_float=Decimal).scan_once  # type: ignore[attr-defined]


@dataclass(frozen=True)
class TextPlaces:
    """Where the values of a type have text: they are text, or their fields or elements have some."""

    is_text: bool = False
    fields: Mapping[str, TextPlaces] = field(default_factory=dict)
    elements: TextPlaces | None = None
    values: TextPlaces | None = None
    """Those of a map."""

    def hold_nested(self, value: Any) -> bool:
        """True if a value of JSON has an object or an array where the type has text."""
        if isinstance(value, dict):
            each_of = self.values
            return (
                self.is_text
                or any(name in value and inner.hold_nested(value[name]) for name, inner in self.fields.items())
                or (each_of is not None and any(map(each_of.hold_nested, value.values())))
            )
        if isinstance(value, list):
            return self.is_text or (self.elements is not None and any(map(self.elements.hold_nested, value)))
        return False


def text_places(raw: pa.DataType) -> TextPlaces | None:
    """Where values of a type have text; None if nowhere."""
    if pa.types.is_string(raw):
        return TextPlaces(is_text=True)
    if pa.types.is_struct(raw):
        fields = {each.name: text_places(each.type) for each in raw}
        known = {name: each for name, each in fields.items() if each is not None}
        return TextPlaces(fields=known) if known else None
    if pa.types.is_map(raw):
        inner = text_places(raw.item_type)
        return None if inner is None else TextPlaces(values=inner)
    inner = text_places(raw.value_type) if pa.types.is_list(raw) else None
    return None if inner is None else TextPlaces(elements=inner)


def as_written(text: str, places: TextPlaces) -> Any:
    """The value of a valid text of JSON; where the type has text, an object or an array is as it is written."""
    return _value(text, _after_blanks(text, 0), places)[0]


def _after_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int, places: TextPlaces | None) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends."""
    if places is not None and not places.is_text and text[at] in "{[":
        return _object(text, at, places) if text[at] == "{" else _array(text, at, places)
    value, end = _SCAN(text, at)
    return (text[at:end] if places is not None and isinstance(value, dict | list) else value), end


def _object(text: str, at: int, places: TextPlaces) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _after_blanks(text, at + 1)
    while text[at] != "}":
        name, end = _SCAN(text, at)
        begin = _after_blanks(text, _after_blanks(text, end) + len(":"))
        found[name], end = _value(text, begin, places.fields.get(name, places.values))
        at = _next(text, end)
    return found, at + 1


def _array(text: str, at: int, places: TextPlaces) -> tuple[list[Any], int]:
    found = []
    at = _after_blanks(text, at + 1)
    while text[at] != "]":
        value, end = _value(text, at, places.elements)
        found.append(value)
        at = _next(text, end)
    return found, at + 1


def _next(text: str, end: int) -> int:
    """Where the next member begins, or the bracket at the end stands."""
    at = _after_blanks(text, end)
    return _after_blanks(text, at + len(",")) if text[at] == "," else at
