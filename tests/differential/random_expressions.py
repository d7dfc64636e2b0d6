"""Random expressions over all functions of the table, each made for a type, and rows for them.

An expression is made of columns, constants, operators, and functions with arguments of the kinds that they declare. An
argument that must be a constant is that of the function's example.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from millrace.errors import MillraceError
from millrace.language import bind_expression
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.declaration import Function

ROWS = 25
COLUMNS = {
    "INT": ["i", "k"], "BIGINT": ["g"], "DOUBLE": ["x", "y"], "DECIMAL": ["d"], "STRING": ["s", "t"], "BOOLEAN": ["p"],
    "BINARY": ["b"], "DATE": ["da"], "TIMESTAMP": ["ts"], "ARRAY<INT>": ["li"], "ARRAY<STRING>": ["ls"],
    "MAP": ["m"], "STRUCT": ["st"],
}  # fmt: skip
SIMPLE = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BOOLEAN", "DATE", "TIMESTAMP")
NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL")
LITERALS = {
    "INT": ["0", "1", "2", "-3", "7", "NULL"], "BIGINT": ["10000000000L", "3L"], "DOUBLE": ["5e-1", "2e0", "-1.25e0"],
    "DECIMAL": ["1.5", "0.25", "-2.00"], "STRING": ["'a'", "'b,c'", "''", "'Ünï'", "'12'", "NULL"],
    "BOOLEAN": ["true", "false"], "BINARY": ["X'00FF'"], "DATE": ["DATE '2024-02-29'"],
    "TIMESTAMP": ["TIMESTAMP '2024-03-31 01:30:00'"], "ARRAY<INT>": ["array(1, 2, NULL)"],
    "ARRAY<STRING>": ["array('a', 'b')"], "MAP": ["map('a', 1)"], "STRUCT": ["named_struct('u', 1, 'v', 'a')"],
}  # fmt: skip
KINDS: dict[str, Sequence[str]] = {
    **{kind: (kind,) for kind in COLUMNS},
    "TEXT": ("STRING", "STRING", "STRING", "BINARY"), "NUMBER": NUMBERS, "WHOLE": ("INT", "BIGINT"),
    "TIME": ("DATE", "TIMESTAMP"), "FLOAT": ("DOUBLE",),
    "ARRAY": ("ARRAY<INT>", "ARRAY<STRING>"),
}  # fmt: skip
OPERATORS = {
    "INT": [
        "{INT} + {INT}", "{INT} - {INT}", "{INT} * {INT}", "{INT} % {INT}", "- {INT}", "{MAP}['a']",
        "CAST({STRING} AS INT)", "CAST({BOOLEAN} AS INT)", "CASE {STRING} WHEN {STRING} THEN {INT} ELSE {INT} END",
        "aggregate({ARRAY<INT>}, 0, (acc, v) -> acc + coalesce(v, 1))", "{ARRAY<INT>}[{INT}]", "{STRUCT}.u",
        "extract(HOUR FROM {TIMESTAMP} - {TIMESTAMP})",
    ],
    "BIGINT": ["{INT} div {INT}", "{BIGINT} - {INT}"],
    "DOUBLE": [
        "{DOUBLE} + {DOUBLE}", "{DOUBLE} * {INT}", "{DOUBLE} / {DOUBLE}", "{DOUBLE} - {DECIMAL}",
        "CAST({STRING} AS DOUBLE)", "CAST({DECIMAL} AS DOUBLE)", "{DECIMAL} / {INT} * {DOUBLE}",
    ],
    "DECIMAL": [
        "{DECIMAL} + {DECIMAL}", "{DECIMAL} - {INT}", "{DECIMAL} * {DECIMAL}", "CAST({INT} AS DECIMAL(12, 3))",
        "CAST({STRING} AS DECIMAL(10, 2))", "CAST({DECIMAL} / {INT} AS DECIMAL(10, 2))",
    ],
    "STRING": [
        "{STRING} || {STRING}", "CAST({INT} AS STRING)", "{ARRAY<STRING>}[0]", "{STRUCT}.v",
        "CAST({DECIMAL} AS STRING)", "CAST({TIMESTAMP} AS STRING)", "CAST(x AS STRING)", "to_json({STRUCT})",
        "CAST({TIMESTAMP} - {TIMESTAMP} AS STRING)", "get_json_object(to_json({STRUCT}), '$.v')",
        "aggregate({ARRAY<STRING>}, '', (acc, v) -> concat(acc, coalesce(v, {STRING})))",
    ],
    "BOOLEAN": [
        "{INT} > {INT}", "{STRING} = {STRING}", "{DOUBLE} <= {DECIMAL}", "{BOOLEAN} AND {BOOLEAN}", "NOT {BOOLEAN}",
        "{BOOLEAN} OR {BOOLEAN}", "{STRING} IS NULL", "{INT} IN ({INT}, {INT})", "{DATE} < {DATE}",
        "{STRING} LIKE '%a_'",
        "{TIMESTAMP} BETWEEN {TIMESTAMP} AND {TIMESTAMP}", "{ARRAY<INT>} = {ARRAY<INT>}", "{INT} <=> {INT}",
        "{DOUBLE} > {DOUBLE}", "{DOUBLE} <=> {DOUBLE}", "{STRUCT} < {STRUCT}",
        "{TIMESTAMP} - {TIMESTAMP} > INTERVAL 36 HOURS",
        "exists({ARRAY<INT>}, v -> v = {INT})", "forall({ARRAY<STRING>}, v -> length(v) > {INT})",
    ],
    "DATE": ["CAST({TIMESTAMP} AS DATE)", "CAST({STRING} AS DATE)"], "BINARY": ["CAST({STRING} AS BINARY)"],
    "TIMESTAMP": [
        "{TIMESTAMP} + INTERVAL 90 MINUTES", "{TIMESTAMP} - make_dt_interval({INT}, 7)", "CAST({DATE} AS TIMESTAMP)",
        "{TIMESTAMP} + INTERVAL '1-2' YEAR TO MONTH",
    ],
    "ARRAY<INT>": [
        "array({INT}, {INT})", "transform({ARRAY<INT>}, v -> v + {INT})", "filter({ARRAY<INT>}, (v, at) -> v > at)",
        "zip_with({ARRAY<INT>}, {ARRAY<INT>}, (v, w) -> coalesce(v, w))", "transform({ARRAY<STRING>}, v -> length(v))",
    ],
    "ARRAY<STRING>": [
        "array({STRING}, {STRING})", "transform({ARRAY<STRING>}, v -> upper(v) || {STRING})",
        "transform({ARRAY<INT>}, (v, at) -> concat(v, at))", "map_keys({MAP})",
    ],
    "MAP": ["map('a', {INT}, 'z', {INT})", "transform_values({MAP}, (q, v) -> v + {INT})"],
    "STRUCT": ["named_struct('u', {INT}, 'v', {STRING})"],
}  # fmt: skip
CHOICES = ["coalesce({0}, {0})", "if({BOOLEAN}, {0}, {0})", "CASE WHEN {BOOLEAN} THEN {0} WHEN {BOOLEAN} THEN {0} END"]
LEFT_OUT = {
    "not Spark's, or with another meaning": "dayofweek_iso epoch json_value json_query to_char is_null is_not_null iff",
    "fails beyond what it reads, or is not handed over as Arrow": "unbase64 make_ym_interval",
    "a number that does not fit is null": "tinyint smallint int bigint float floor ceil",
    "works on doubles": "format_number",
    "is cut off otherwise": "unix_timestamp to_unix_timestamp from_unixtime timestamp_seconds",
    "the types differ, or Spark takes fewer": "map map_from_arrays sort_array array_sort typeof aggregate "
    "convert_timezone map_contains_key struct overlay",
    "as much as an argument says": "repeat space lpad rpad array_repeat sequence",
}
"""Functions that are not compared, because what they do otherwise is known, or is much."""


def given_rows(seed: int) -> pa.RecordBatch:
    """Random columns of all types, with nulls and edges."""
    draw = random.Random(seed)

    def some(make: Any) -> list[Any]:
        return [None if draw.random() < 0.12 else make() for _ in range(ROWS)]

    def time() -> dt.datetime:
        edges = [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            dt.datetime(2024, 10, 27, 1, 30),
            dt.datetime(2000, 2, 29),
        ]
        return draw.choice([*edges, dt.datetime(2021, 1, 1) + dt.timedelta(seconds=draw.randint(-(10**9), 10**8))])

    def several(make: Any, most: int) -> Any:
        return lambda: [make() for _ in range(draw.randint(0, most))]

    kinds = {"map": pa.map_(pa.string(), pa.int32()), "struct": pa.struct([("u", pa.int32()), ("v", pa.string())])}
    maps = [[], [("a", 1)], [("a", None), ("b", 2)]]
    texts = ["", "a", "abc", "Ünïcödé", "b,c,d", " x ", "12", "-3.5", "2024-02-29", "日本", "A1b2", "a.b.c", "%_"]
    numbers = [0.0, 1.0, -1.5, 2.25, 1e10, -0.001, 123.456, 1.005, math.nan, math.inf]
    return pa.record_batch(
        {
            "i": pa.array(some(lambda: draw.randint(-20, 100)), pa.int32()),
            "k": pa.array(some(lambda: draw.choice([0, 1, 2, 3, -1, 1000, -1000])), pa.int32()),
            "g": pa.array(some(lambda: draw.choice([0, 5, -7, 10**12, 2**62])), pa.int64()),
            "x": pa.array(some(lambda: draw.choice(numbers)), pa.float64()),
            "y": pa.array(some(lambda: draw.uniform(-100, 100)), pa.float64()),
            "d": pa.array(some(lambda: Decimal(draw.randint(-(10**7), 10**7)).scaleb(-2)), pa.decimal128(10, 2)),
            "s": pa.array(some(lambda: draw.choice(texts)), pa.string()),
            "t": pa.array(some(lambda: draw.choice(texts)), pa.string()),
            "p": pa.array(some(lambda: draw.random() < 0.5), pa.bool_()),
            "b": pa.array(some(lambda: draw.choice([b"", b"a", b"\x00\xff", "ü".encode()])), pa.binary()),
            "da": pa.array(some(lambda: time().date()), pa.date32()),
            "ts": pa.array(some(time), pa.timestamp("us", "UTC")),
            "li": pa.array(some(several(lambda: draw.choice([1, 2, 3, None]), 4)), pa.list_(pa.int32())),
            "ls": pa.array(some(several(lambda: draw.choice(texts), 3)), pa.list_(pa.string())),
            "m": pa.array(some(lambda: draw.choice(maps)), kinds["map"]),
            "st": pa.array(some(lambda: {"u": draw.randint(0, 3), "v": draw.choice(texts)}), kinds["struct"]),
        }
    )  # fmt: skip


@dataclass
class Expressions:
    """Makes expressions that are valid here."""

    seed: int
    schema: pa.Schema
    draw: random.Random = field(init=False)
    refused: Counter[str] = field(default_factory=Counter)
    """How often an expression with a function was refused here."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    @cached_property
    def functions(self) -> list[Function]:
        found = {id(each): each for each in FUNCTIONS.values()}.values()
        left_out = " ".join(LEFT_OUT.values()).split()
        return [each for each in found if each.name not in left_out and each.parameters and arguments_of(each.example)]

    @cached_property
    def accepted(self) -> dict[str, list[list[str]]]:
        """By function the types that each argument may have beside the others of its example; none of a constant."""
        return {each.name: [*self._accepted(each)] for each in self.functions}

    def _accepted(self, function: Function) -> Iterator[list[str]]:
        written = arguments_of(function.example)
        for place, kind in enumerate(function.kinds(len(written))):
            if function.parameters[min(place, len(function.parameters) - 1)].name == "zone":
                yield []
                continue
            # Spark takes fewer types than their kind says: those like the example's are safe.
            like = self.kind_of(written[place])
            wanted: Sequence[str] = KINDS.get(kind, () if like is None or kind in ("UNIT", "FUNCTION") else (like,))
            calls = {
                each: f"{function.name}({', '.join([*written[:place], COLUMNS[each][0], *written[place + 1 :]])})"
                for each in wanted
            }
            yield [each for each, call in calls.items() if self.is_valid(call)]

    def kind_of(self, text: str) -> str | None:
        """The type of a valid expression, if columns have it."""
        try:
            kind = bind_expression(text, self.schema).type_in(self.schema)
        except MillraceError:
            return None
        return next((name for name, (column, *_) in COLUMNS.items() if self.schema.field(column).type == kind), None)

    def is_valid(self, text: str) -> bool:
        """True if an expression is one here."""
        try:
            bind_expression(text, self.schema)
        except MillraceError:
            return False
        return True

    def next(self) -> str:
        """A random valid expression, most of them calls; each function has its turn."""
        while True:
            function = self.draw.choice(self.functions)
            text = self.call(function, self.draw.choice([2, 3, 3, 4]))
            if self.is_valid(text):
                return text if self.draw.random() < 0.7 else self._around(text)
            self.refused[function.name] += 1

    def _around(self, text: str) -> str:
        other = self.draw.choice(
            ["coalesce({0}, {0})", "if({BOOLEAN}, {0}, NULL)", "{0} IS NULL", "CAST({0} AS STRING)"]
        )
        found = self.filled(other.replace("{0}", text), 1)
        return found if self.is_valid(found) else text

    def call(self, function: Function, depth: int) -> str:
        written = arguments_of(function.example)
        count = max(function.least, min(len(written), function.most))
        same = self.draw.choice(SIMPLE)
        made = [self._argument(function, place, kind, same, depth) for place, kind in enumerate(function.kinds(count))]
        return f"{function.name}({', '.join(made)})"

    def _argument(self, function: Function, place: int, kind: str, same: str, depth: int) -> str:
        written, accepted = arguments_of(function.example), self.accepted[function.name]
        kinds = accepted[min(place, len(accepted) - 1)]
        if place < len(written) and (not kinds or self.draw.random() < 0.05):
            return written[place]
        if function.parameters[min(place, len(function.parameters) - 1)].name == "year":
            # Others are not supported here.
            return self.draw.choice(["2024", "1969", "abs(k) + 1", "NULL"])
        if kind == "ARRAY<T>":
            kinds = ["ARRAY<STRING>" if same == "STRING" else "ARRAY<INT>"]
        return self.value(same if kind == "T" else self.draw.choice(kinds or SIMPLE), depth - 1)

    def value(self, kind: str, depth: int) -> str:
        """An expression of a type."""
        if depth <= 0 or self.draw.random() < 0.3:
            return self.draw.choice(COLUMNS[kind] * 5 + LITERALS[kind])
        if self.draw.random() < 0.5:
            found = [each for each in self.functions if kind in KINDS.get(each.returns, (kind,))]
            text = self.call(self.draw.choice(found), depth) if found else ""
            if text and self.kind_of(text) == kind:
                return text
        forms = [each.replace("{0}", f"{{{kind}}}") for each in CHOICES]
        return f"({self.filled(self.draw.choice(OPERATORS[kind] * 2 + forms), depth - 1)})"

    def filled(self, form: str, depth: int) -> str:
        """A form with a value for each {TYPE} in it."""
        for kind in COLUMNS:
            while f"{{{kind}}}" in form:
                form = form.replace(f"{{{kind}}}", self.value(kind, depth), 1)
        return form


def arguments_of(example: str) -> list[str]:
    """The arguments of a call as they are written; none of what is no call.

    >>> arguments_of("f('a,b', g(1, 2), x -> x)")
    ["'a,b'", 'g(1, 2)', 'x -> x']
    """
    name, _, inside = example.partition("(")
    if not name.isidentifier() or not inside.endswith(")"):
        return []
    parts, depth, quoted = [""], 0, False
    for character in inside[:-1]:
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "([") - (character in ")]")
        if depth < 0:
            return []
        if character == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [each.strip() for each in parts if each.strip()]
