"""Types as SQL spells them, and back.

Nested types are Arrow's own: `ARRAY<T>` is a list, `STRUCT<a: T>` a struct, `MAP<K, V>` a map, to any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from millrace.kernel.elements import INTERVAL, MONTHS, TIMESTAMP

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
    INTERVAL: "INTERVAL DAY TO SECOND",
    MONTHS: "INTERVAL YEAR TO MONTH",
    pa.null(): "VOID",
}
SQL_TYPES: dict[str, pa.DataType] = {
    name: kind for kind, name in _NAMES.items() if name != "VOID" and not name.startswith("INTERVAL")
}
"""The types that have a name and nothing else."""
TYPE_NAMES = (*SQL_TYPES, "DECIMAL", "ARRAY", "STRUCT", "MAP")
"""The words that begin a type."""
_OTHER_NAMES = {
    **dict.fromkeys(("BOOL",), "BOOLEAN"),
    **dict.fromkeys(("BYTE",), "TINYINT"),
    **dict.fromkeys(("SHORT",), "SMALLINT"),
    **dict.fromkeys(("INTEGER",), "INT"),
    **dict.fromkeys(("LONG",), "BIGINT"),
    **dict.fromkeys(("REAL",), "FLOAT"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"), "TIMESTAMP"),
    **dict.fromkeys(("DEC", "NUMERIC"), "DECIMAL"),
}
_WORD = re.compile(r"\s*(`(?:``|[^`])*`|'(?:''|[^'])*'|\w+|[<>(),:])")
MOST_DIGITS = 38


def sql_name(kind: pa.DataType) -> str:
    """A type as SQL spells it.

    >>> sql_name(pa.list_(pa.struct([("price", pa.decimal128(10, 2))])))
    'ARRAY<STRUCT<price: DECIMAL(10, 2)>>'
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{sql_name(kind.key_type)}, {sql_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.type)}' for field in kind)}>"
    return _NAMES.get(kind, str(kind))


def read_type(text: str) -> pa.DataType | None:
    """The type that a text spells; None if it spells none.

    >>> str(read_type("map<string, array<decimal(10, 2)>>"))
    'map<string, list<item: decimal128(10, 2)>>'
    """
    return _read(text, _Words.type)


def read_columns(text: str) -> pa.DataType | None:
    """A struct of the columns that a text lists, `a INT, b STRING`; None if it lists none."""
    return _read(text, lambda words: words.fields(""))


def _read(text: str, read: Callable[[_Words], pa.DataType]) -> pa.DataType | None:
    try:
        words = _Words(text)
        found = read(words)
    except (LookupError, ValueError):
        return None
    return None if words.rest else found


class _Words:
    """Reads the words of a type from left to right; raises LookupError or ValueError where they spell none."""

    def __init__(self, text: str) -> None:
        self.rest = [found[1] for found in _WORD.finditer(text)][::-1]
        if "".join(self.rest[::-1]) != re.sub(r"\s+", "", text) and "`" not in text and "'" not in text:
            raise ValueError(text)

    def type(self) -> pa.DataType:
        name = self.rest.pop().upper()
        name = _OTHER_NAMES.get(name, name)
        if name == "DECIMAL":
            precision, scale = [*self._numbers(), 0, 0][:2] if self._at("(") else (10, 0)
            if not 0 <= scale <= precision <= MOST_DIGITS or not precision:
                raise ValueError(name)
            return pa.decimal128(precision, scale)
        if name == "STRUCT":
            self._expect("<")
            return self.fields(">")
        if name == "INTERVAL":
            return self._interval()
        if name in ("ARRAY", "MAP"):
            return self._of_elements(name)
        if self._at("("):
            # A length, as in VARCHAR(10), says nothing here.
            self._numbers()
        return SQL_TYPES[name]

    def _interval(self) -> pa.DataType:
        first = self.rest.pop().upper()
        if self._take("TO"):
            self.rest.pop()
        if first in ("YEAR", "MONTH"):
            return MONTHS
        return {"DAY": INTERVAL, "HOUR": INTERVAL, "MINUTE": INTERVAL, "SECOND": INTERVAL}[first]

    def _of_elements(self, name: str) -> pa.DataType:
        self._expect("<")
        first = self.type()
        if name == "ARRAY":
            found = pa.list_(first)
        else:
            self._expect(",")
            found = pa.map_(first, self.type())
        self._expect(">")
        return found

    def fields(self, end: str) -> pa.DataType:
        """`name: type, name type, ...` up to a word, or to the end."""
        found: list[pa.Field] = []
        while not (self.rest and self._at(end)):
            if found:
                self._expect(",")
            name = self.rest.pop()
            name = name[1:-1].replace("``", "`") if name[0] == "`" else name
            self._take(":")
            found.append(pa.field(name, self.type()))
            if self._take("NOT"):
                self._expect("NULL")
            if self._take("COMMENT"):
                self.rest.pop()
            if not self.rest and not end:
                break
        self._take(end)
        if len({each.name.lower() for each in found}) < len(found):
            raise ValueError("two fields of one name")
        return pa.struct(found)

    def _numbers(self) -> list[int]:
        self._expect("(")
        found = [int(self.rest.pop())]
        while self._take(","):
            found.append(int(self.rest.pop()))
        self._expect(")")
        return found

    def _at(self, word: str) -> bool:
        return bool(self.rest) and self.rest[-1].upper() == word

    def _take(self, word: str) -> bool:
        found = self._at(word)
        if found:
            self.rest.pop()
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise ValueError(word)
