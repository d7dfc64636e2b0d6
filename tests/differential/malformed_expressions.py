"""Malformed expressions, made of valid ones: each is accepted, or refused with a hint at its place, and soon.

    python -m tests.differential.fuzz --malformed 2000 --seed 1

prints what is neither.
"""

from __future__ import annotations

import random
import re
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import pyarrow as pa

from millrace.errors import MillraceError, QueryError
from millrace.kernel.columns.sql_types import sql_name
from millrace.language import bind_expression, parse_network
from millrace.language.expressions.functions import FUNCTIONS
from millrace.plan.physical.stages import physical
from tests.differential.random_expressions import LITERALS, Expressions

TOKENS = re.compile(r"'(?:[^'\\]|\\.)*'|\d+(?:\.\d+)?(?:e-?\d+)?|\w+|->|<=>|[<>]=|<>|\|\||::|\S|\s+")
WORDS = [
    "(", ")", "[", "]", "{", "}", ",", ".", ";", "'", '"', "`", "->", "=>", "::", ":", "--", "/*", "AND", "NULL", "IN",
    "CASE", "WHEN", "END", "CAST(", "array(", "INTERVAL", "DISTINCT", "*", "@", "#", "$", "?", "\\",
]  # fmt: skip
ODD = ["🌊", "e\u0301", "\u200b", "\u00a0", "\u202e", "\ufeff", "（", "’", "\x00", "\ud800", "Ｉ", "İ", "٣", "\r"]
NESTED = [
    ("(", ")"), ("- ", ""), ("NOT ", ""), ("array(", ")"), ("coalesce(NULL, ", ")"), ("CASE WHEN p THEN ", " END"),
    ("transform(li, v -> ", ")"), ("CAST(", " AS STRING)"), ("", "[0]"), ("", ".u"), ("", " + 1"), ("", "::INT"),
    ("(", ""),
]  # fmt: skip
PATIENCE = 60.0
"""Seconds of processor time after which an expression counts as one that hangs."""


def malformed(text: str, draw: random.Random) -> str:
    """An expression with up to three things wrong."""
    for _ in range(draw.randint(1, 3)):
        text = draw.choice(MUTATIONS)(text, draw) or draw.choice(WORDS)
    return text


def _characters(text: str, draw: random.Random) -> str:
    at, to = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    to = min(to, at + 8)
    return text[:at] + draw.choice(["", text[at:to] * 2, draw.choice(WORDS), text[at:to][::-1]]) + text[to:]


def _tokens(text: str, draw: random.Random) -> str:
    tokens = TOKENS.findall(text)
    at, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
    change = draw.choice(["drop", "double", "exchange", "put in", "another"])
    if change == "exchange":
        tokens[at], tokens[other] = tokens[other], tokens[at]
    else:
        word = draw.choice([*WORDS, *LITERALS[draw.choice([*LITERALS])]])
        tokens[at] = {"drop": "", "double": f"{tokens[at]} {tokens[at]}", "put in": f"{tokens[at]} {word} "}.get(
            change, word
        )
    return "".join(tokens)


def _names(text: str, draw: random.Random) -> str:
    """Another function, or a name that is none."""
    names = re.findall(r"\b[A-Za-z_]\w*", text) or [text]
    other = draw.choice([*FUNCTIONS, "nowhere", "sum", "count", "explode", "rank", "now", "window_start", "select"])
    return text.replace(draw.choice(names), other, 1)


def _arguments(text: str, draw: random.Random) -> str:
    """An argument more, less, or of another type."""
    commas = [found.start() for found in re.finditer(r"[(,]", text)]
    if not commas:
        return f"{text}, {text}"
    at = draw.choice(commas)
    end = re.compile(r"[,)]|$").search(text, at + 1)
    to = end.start() if end else len(text)
    new = draw.choice(["", *LITERALS[draw.choice([*LITERALS])], "*", f"{text[at + 1 : to]}, 1", "DISTINCT i", "v -> v"])
    return text[: at + 1] + new + text[to:]


def _odd(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(ODD) + text[at:]


def _deep(text: str, draw: random.Random) -> str:
    (before, after), count = draw.choice(NESTED), draw.choice([3, 40, 149, 150, 400, 2000])
    return before * count + text + after * count


MUTATIONS: list[Callable[[str, random.Random], str]] = [
    _characters, _tokens, _tokens, _tokens, _names, _arguments, _arguments, _odd, _deep,
]  # fmt: skip


@dataclass
class Malformed:
    """What became of malformed expressions, each in a query and over rows."""

    rows: pa.RecordBatch
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def try_many(self, seed: int, count: int) -> None:
        """Make and try many."""
        draw, expressions = random.Random(seed), Expressions(seed, self.rows.schema)
        for _ in range(count):
            self.try_one(malformed(expressions.next(), draw))

    def try_one(self, text: str) -> None:
        """Try one; whatever else it raises is a fault, with its last lines."""
        try:
            with _limited():
                self.outcomes[self._outcome(text)] += 1
        except Exception as error:
            lines = "".join(traceback.format_exception(error)[-3:])
            self.faults.append(f"{text[:300]!r}: {lines}")

    def _outcome(self, text: str) -> str:
        columns = ", ".join(f"{each.name} {sql_name(each.type)}" for each in self.rows.schema)
        stream = f"CREATE STREAM given ({columns}) TIMESTAMP BY ts ORDERED FROM iterable;"
        try:
            physical(parse_network(f"{stream}\nCREATE QUERY q AS SELECT ts, {text} AS c FROM given;")).whole()
        except MillraceError as error:
            assert error.fact and error.hint and "\n" not in error.fact, error
            assert not isinstance(error, QueryError) or error.place, error
            return f"refused: {type(error).__name__}"
        try:
            bind_expression(text, self.rows.schema).over(self.rows)
        except QueryError:
            return "no expression, but a query with it"
        except (MillraceError, pa.ArrowException):
            # The executor makes an error of ours of Arrow's, which names the operator.
            return "fails over the rows"
        return "valid"


@contextmanager
def _limited() -> Iterator[None]:
    """Raise in what takes so much processor time that it seems to hang."""

    def strike(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("does not come to an end")

    before = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
