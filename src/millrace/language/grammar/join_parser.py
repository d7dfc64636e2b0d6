"""FROM with several inputs: commas, JOIN of all kinds, ASOF JOIN, and sequences with SEQ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.from_parser import FromParser
from millrace.language.grammar.statements import FromItem, JoinClause, JoinKind, Name, SequenceClause, WindowClause

_JOIN_HINT = "Write a AS x JOIN b AS y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS."
_ASOF_HINT = "Write b ASOF JOIN a ON a.ts <= b.ts AND a.k = b.k, or b ASOF JOIN a MATCH_CONDITION (b.ts >= a.ts)."
_SEQ_HINT = (
    "Write FROM a SEQ b SEQ c ON a.k = b.k AND b.k = c.k MODE RECENT | CHRONICLE OUTER WITHIN INTERVAL 5 MINUTES, "
    "in this order; ON, OUTER and WITHIN may be left out."
)
_ALONE_HINT = "Put the sequence into a subquery: FROM (SELECT ... FROM a SEQ b MODE RECENT) AS s JOIN ..."
_SIDES: tuple[Literal["left", "right", "full"], ...] = ("left", "right", "full")
_LATER = {
    "NATURAL": "Name the columns: JOIN b USING (k).",
    "SEMI": "JOIN gives a row once for each that it meets; to have it once, make the second input unique first: "
    "JOIN (SELECT k, count(*) AS n FROM b [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k) AS y ON ...",
    "ANTI": "Use LEFT JOIN, and WHERE y.k IS NULL around it.",
    "LATERAL": "Use JOIN with a window or a band on the times.",
}


@dataclass(frozen=True)
class Read:
    """All that a select reads: the first input, those joined to it, and what holds for all of them."""

    source: FromItem
    joins: tuple[JoinClause, ...] = ()
    sequence: SequenceClause | None = None
    window: WindowClause | None = None


class JoinParser(FromParser):
    """Reads FROM."""

    def read_from(self) -> Read:
        """The inputs of a select."""
        source = self.from_item()
        joins: list[JoinClause] = []
        while (clause := self._join()) is not None:
            joins.append(clause)
        if not any(each.kind == "seq" for each in joins):
            return _with_bare_window(Read(source, tuple(joins)))
        for each in joins:
            if each.kind != "seq":
                raise QueryError(
                    "SEQ stands beside another join",
                    hint=_ALONE_HINT,
                    place=each.place,
                )
        return Read(source, tuple(joins), self._alone(self._sequence()))

    def _alone(self, sequence: SequenceClause) -> SequenceClause:
        """Refuse what is joined to a sequence."""
        here = self.place()
        if self._curr and self._join() is not None:
            raise QueryError("a sequence stands alone in its FROM", hint=_ALONE_HINT, place=here)
        return sequence

    def with_window_after(self, read: Read) -> Read:
        """`WINDOW i` after WHERE, which holds for all inputs."""
        if not self.at("WINDOW"):
            return read
        window = self.bare_window()
        if (read.source.window if not read.joins else read.window) is not None:
            raise QueryError("a second window stands after WHERE", hint="Write one of them.", place=window.place)
        if read.joins:
            return replace(read, window=window)
        return replace(read, source=replace(read.source, window=window))

    # One join

    def _join(self) -> JoinClause | None:
        first = self._curr
        if self._match(TokenType.COMMA):
            return self._joined("inner", first)
        if self.take("SEQ"):
            return self._joined("seq", first)
        self._refuse_later()
        asof = self.take("ASOF")
        side = next((each for each in _SIDES if self.take(each.upper())), None)
        self._refuse_later()
        if side is not None:
            self.take("OUTER")
        cross = side is None and self.take("CROSS")
        inner = side is None and self.take("INNER")
        asof = asof or self.take("ASOF")
        if not (asof or side or cross or inner or self.at("JOIN")):
            return None
        self.expect("JOIN", hint=_ASOF_HINT if asof else _JOIN_HINT)
        if asof:
            return self._asof(side, first)
        return self._joined("inner" if side is None else side, first, bare=cross)

    def _refuse_later(self) -> None:
        for word, hint in _LATER.items():
            if self.at(word):
                raise NotYet(f"{word} joins have no engine part yet", hint=hint, place=self.place())

    def _joined(self, kind: JoinKind, first: Token, *, bare: bool = False) -> JoinClause:
        """An input after a comma, SEQ or JOIN; only JOIN has a condition of its own."""
        written = self.source.of_token(first)
        item = self.from_item()
        clause = JoinClause(kind, item, place=written)
        if bare or kind == "seq" or first.token_type == TokenType.COMMA:
            return clause
        on, using = self._condition()
        if kind != "inner" and on is None and not using:
            raise self.wrong(f"ON or USING after {kind.upper()} JOIN", _JOIN_HINT)
        return replace(clause, on=on, using=using)

    def _asof(self, side: str | None, first: Token) -> JoinClause:
        if side in ("right", "full"):
            raise QueryError(
                f"an as-of join cannot be {side.upper()}",
                hint="It answers each row of the first stream: write ASOF JOIN or ASOF LEFT JOIN.",
                place=self.source.of_token(first),
            )
        item = self.from_item()
        match = None
        if self.take("MATCH_CONDITION"):
            match = self.parenthesised(lambda: self.expression_here("a condition", _ASOF_HINT), _ASOF_HINT)[0]
        on, using = self._condition()
        return JoinClause("asof", item, on, using, match, outer=side is not None, place=self.source.of_token(first))

    def _condition(self) -> tuple[exp.Expr | None, tuple[Name, ...]]:
        if self._match(TokenType.ON):
            return self.expression_here("a condition after ON", _JOIN_HINT), ()
        if self._match(TokenType.USING):
            return None, self.parenthesised(lambda: self.name("a column", _JOIN_HINT), _JOIN_HINT)
        return None, ()

    # SEQ

    def _sequence(self) -> SequenceClause:
        first = self._curr
        on = self.expression_here("a condition after ON", _SEQ_HINT) if self._match(TokenType.ON) else None
        if self._match(TokenType.USING, advance=False):
            raise QueryError("USING stands in a sequence", hint=_SEQ_HINT, place=self.place())
        self.expect("MODE", hint=_SEQ_HINT)
        mode: Literal["recent", "chronicle"]
        if self.take("RECENT"):
            mode = "recent"
        elif self.take("CHRONICLE"):
            mode = "chronicle"
        else:
            raise self.wrong("RECENT or CHRONICLE", _SEQ_HINT)
        outer = self.take("OUTER")
        within = self.length(_SEQ_HINT) if self.take("WITHIN") else None
        return SequenceClause(mode, on, outer or self.take("OUTER"), within, place=self.place_since(first))


def _with_bare_window(read: Read) -> Read:
    """`FROM a, b WINDOW 10 minutes`: the window without brackets holds for all inputs, not for the last alone."""
    if not read.joins or (window := read.joins[-1].item.window) is None:
        return read
    if not window.bare:
        return read
    last = replace(read.joins[-1], item=replace(read.joins[-1].item, window=None))
    return replace(read, joins=(*read.joins[:-1], last), window=window)
