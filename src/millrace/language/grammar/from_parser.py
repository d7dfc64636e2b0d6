"""FROM: streams, unions and subqueries, each with a window and a name, joined by commas, JOIN of all kinds, or SEQ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.explode_parser import explode_clause
from millrace.language.grammar.statements import (
    Body,
    ExplodeClause,
    FromItem,
    JoinClause,
    JoinKind,
    Name,
    SequenceClause,
    WindowClause,
)
from millrace.language.grammar.text.cursor import Cursor
from millrace.language.grammar.unsupported import refuse_unsupported
from millrace.language.grammar.window_parser import FILES, bare_window, table_function, window

SELECT_HINT = "A query reads SELECT columns FROM stream [window] WHERE ... GROUP BY ... HAVING ..."
_TRUTH_HINT = "Name the stream of the union that wins where two have a row of one key and time: FROM a UNION b TRUTH b."
_JOIN_HINT = "Write a AS x JOIN b AS y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS."
_ASOF_HINT = "Write b ASOF JOIN a ON a.ts <= b.ts AND a.k = b.k, or b ASOF JOIN a MATCH_CONDITION (b.ts >= a.ts)."
_AFTER_WITHIN = {
    "OUTER",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "QUALIFY",
    "UNION",
    "WITH",
    "INTO",
    "ACCESS",
    ")",
    ";",
}
"""What may follow a number after WITHIN."""
_AS_OF_HINT = "Write FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k."
_SEQ_HINT = (
    "Write FROM a SEQ b SEQ c ON a.k = b.k AND b.k = c.k MODE RECENT | CHRONICLE OUTER WITHIN INTERVAL 5 MINUTES, "
    "in this order; ON, OUTER and WITHIN may be left out."
)
_ALONE_HINT = "Put the sequence into a subquery: FROM (SELECT ... FROM a SEQ b MODE RECENT) AS s JOIN ..."
_SIDES: tuple[Literal["left", "right", "full"], ...] = ("left", "right", "full")


@dataclass(frozen=True)
class FromClause:
    """All that a select reads: the first input, those joined to it, and what holds for all of them."""

    source: FromItem
    joins: tuple[JoinClause, ...] = ()
    sequence: SequenceClause | None = None
    window: WindowClause | None = None
    explodes: tuple[ExplodeClause, ...] = ()


class FromParser:
    """Reads FROM; `body` reads a subquery, `common_tables` are those of WITH, by name in lower case."""

    def __init__(self, cursor: Cursor, body: Callable[[], Body]) -> None:
        self.cursor = cursor
        self.body = body
        self.common_tables: dict[str, Body] = {}

    def clause(self) -> FromClause:
        """The inputs of a select."""
        source = self._item()
        if source.as_of is not None:
            fact = "FOR SYSTEM_TIME AS OF is for the second input of a join"
            raise QueryError(fact, hint=_AS_OF_HINT, place=source.place)
        joins: list[JoinClause] = []
        explodes: list[ExplodeClause] = []
        while (found := explode_clause(self.cursor) or self._join()) is not None:
            if isinstance(found, JoinClause):
                joins.append(found)
            else:
                explodes.append(found)
        if not any(each.kind == "seq" for each in joins):
            return _with_bare_window(FromClause(source, tuple(joins), explodes=tuple(explodes)))
        for each in joins:
            if each.kind != "seq":
                raise QueryError("SEQ cannot be combined with another join", hint=_ALONE_HINT, place=each.place)
        sequence = self._sequence()
        here = self.cursor.place()
        if self.cursor.token and self._join() is not None:
            raise QueryError("a sequence cannot be joined in the same FROM", hint=_ALONE_HINT, place=here)
        return FromClause(source, tuple(joins), sequence, explodes=tuple(explodes))

    def with_window_after(self, read: FromClause) -> FromClause:
        """`WINDOW i` after WHERE, which holds for all inputs."""
        if not self.cursor.at("WINDOW"):
            return read
        found = bare_window(self.cursor)
        if (read.source.window if not read.joins else read.window) is not None:
            raise QueryError("a second window is given after WHERE", hint="Write one of them.", place=found.place)
        if read.joins:
            return replace(read, window=found)
        return replace(read, source=replace(read.source, window=found))

    # One input

    def _item(self) -> FromItem:
        """`a UNION b UNION c [TRUTH c] [window] AS name`: what follows the last stream holds for the whole union."""
        cursor = self.cursor
        first = cursor.token
        sources: list[Name | Body] = []
        while True:
            found, laid = self._source()
            sources.append(found)
            as_of = self._as_of()
            truth = cursor.name("a stream", _TRUTH_HINT) if cursor.take("TRUTH") else None
            alias = cursor.alias()
            laid = laid or self._window()
            alias = alias or cursor.alias()
            if alias is not None and isinstance(found, Body) and cursor.at_type(TokenType.L_PAREN):
                sources[-1] = replace(found, columns=cursor.names("a column", SELECT_HINT))
            if not self._at_union_of_streams():
                break
            _refuse_in_the_middle(laid, alias or truth)
        if len(sources) == 1 and isinstance(found, Name) and found.text.lower() in self.common_tables:
            alias = alias or found
        sources = [self._meant(each) for each in sources]
        _check_truth(truth, sources)
        common = tuple(self.common_tables)
        return FromItem(tuple(sources), laid, alias, truth, as_of, common, place=cursor.place_since(first))

    def _as_of(self) -> exp.Expr | None:
        """Read `FOR SYSTEM_TIME AS OF time` if it comes next."""
        if not self.cursor.take("FOR", "SYSTEM_TIME"):
            return None
        self.cursor.expect("AS", "OF", hint=_AS_OF_HINT)
        return self.cursor.expression("a time", _AS_OF_HINT)

    def _meant(self, source: Name | Body) -> Name | Body:
        """The query behind the name of a common table."""
        return self.common_tables.get(source.text.lower(), source) if isinstance(source, Name) else source

    def _source(self) -> tuple[Name | Body, WindowClause | None]:
        cursor = self.cursor
        if cursor.take_type(TokenType.L_PAREN):
            return self.subquery(), None
        if (called := table_function(cursor)) is not None:
            return called
        if cursor.at_type(TokenType.L_BRACKET):
            hint = "Write FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]."
            raise QueryError("a window stands before its stream", hint=hint, place=cursor.place())
        if cursor.at_type(TokenType.STRING) and self.cursor.source.text[cursor.token.start] == "'":
            hint = FILES if "." in cursor.token.text else f"A name stands without such quotes: {cursor.token.text}."
            raise cursor.wrong("a stream", hint)
        if cursor.at("LATERAL"):
            hint = "Leave LATERAL out: FROM s CROSS JOIN UNNEST(column) AS t (element)."
            raise QueryError("LATERAL is no part of FROM here", hint=hint, place=cursor.place())
        name = cursor.name("a stream", "FROM takes a stream, a union of streams or a subquery in parentheses.")
        if cursor.take_type(TokenType.DOT):
            is_file = cursor.token and cursor.token.text.lower() in ("csv", "json", "parquet", "txt", "gz")
            hint = FILES if is_file else "A stream has one name, without a dot."
            raise QueryError(f'a dot follows stream "{name.text}"', hint=hint, place=name.place)
        return name, None

    def subquery(self) -> Body:
        """A query and the parenthesis that closes it."""
        body = self.body()
        self.cursor.expect(")", hint=SELECT_HINT, what='")" at the end of the subquery')
        return body

    def _window(self) -> WindowClause | None:
        if self.cursor.at_type(TokenType.L_BRACKET):
            return window(self.cursor)
        return bare_window(self.cursor) if self.cursor.at("WINDOW") else None

    def _at_union_of_streams(self) -> bool:
        """Read UNION if a stream follows it; UNION before a select joins whole selects."""
        here = self.cursor.position
        if not self.take_union():
            return False
        if self.cursor.at_type(TokenType.SELECT, TokenType.L_PAREN):
            self.cursor.back_to(here)
            return False
        return True

    def take_union(self) -> bool:
        """Read UNION or UNION ALL if it comes next."""
        if not self.cursor.take_type(TokenType.UNION):
            return False
        if self.cursor.at("DISTINCT"):
            hint = (
                "UNION keeps all rows; SELECT DISTINCT ... FROM (SELECT ... UNION SELECT ...) leaves repetitions out."
            )
            raise NotYet("UNION DISTINCT is not supported yet", hint=hint, place=self.cursor.place())
        self.cursor.take_type(TokenType.ALL)
        return True

    # One join

    def _join(self) -> JoinClause | None:
        cursor = self.cursor
        first = cursor.token
        if cursor.take_type(TokenType.COMMA):
            cursor.refuse_end_of_list()
            return self._joined("inner", first)
        if cursor.take("SEQ"):
            return self._joined("seq", first)
        refuse_unsupported(cursor)
        natural = cursor.take("NATURAL")
        asof = not natural and cursor.take("ASOF")
        side = next((each for each in _SIDES if cursor.take(each.upper())), None)
        refuse_unsupported(cursor)
        if side is not None:
            cursor.take("OUTER")
        cross = side is None and not natural and cursor.take("CROSS")
        refuse_unsupported(cursor)
        inner = side is None and cursor.take("INNER")
        asof = asof or (not natural and cursor.take("ASOF"))
        if not (natural or asof or side or cross or inner or cursor.at("JOIN")):
            return None
        cursor.expect("JOIN", hint=_ASOF_HINT if asof else _JOIN_HINT)
        if asof:
            return self._asof(side, first)
        return self._joined("inner" if side is None else side, first, bare=cross, natural=natural)

    def _joined(self, kind: JoinKind, first: Token, *, bare: bool = False, natural: bool = False) -> JoinClause:
        """An input after a comma, SEQ or JOIN; only JOIN has a condition of its own, unless it is NATURAL."""
        clause = JoinClause(kind, self._item(), natural=natural, place=self.cursor.source.of_token(first))
        if natural and self.cursor.at_type(TokenType.ON, TokenType.USING):
            hint = "It is USING all columns that both inputs have: leave NATURAL or the condition out."
            raise QueryError("NATURAL JOIN takes neither ON nor USING", hint=hint, place=self.cursor.place())
        if bare or natural or kind == "seq" or first.token_type == TokenType.COMMA:
            return clause
        on, using = self._condition()
        if kind != "inner" and on is None and not using:
            raise self.cursor.wrong(f"ON or USING after {kind.upper()} JOIN", _JOIN_HINT)
        return replace(clause, on=on, using=using)

    def _asof(self, side: str | None, first: Token) -> JoinClause:
        place = self.cursor.source.of_token(first)
        if side in ("right", "full"):
            raise QueryError(
                f"an as-of join cannot be {side.upper()}",
                hint="It answers each row of the first stream: write ASOF JOIN or ASOF LEFT JOIN.",
                place=place,
            )
        item = self._item()
        match = None
        if self.cursor.take("MATCH_CONDITION"):
            match = self.cursor.parenthesised(lambda: self.cursor.expression("a condition", _ASOF_HINT), _ASOF_HINT)[0]
        on, using = self._condition()
        return JoinClause("asof", item, on, using, match, outer=side is not None, place=place)

    def _condition(self) -> tuple[exp.Expr | None, tuple[Name, ...]]:
        if self.cursor.take_type(TokenType.ON):
            return self.cursor.expression("a condition after ON", _JOIN_HINT), ()
        if self.cursor.take_type(TokenType.USING):
            return None, self.cursor.names("a column", "Write the columns in parentheses: JOIN b USING (k).")
        return None, ()

    # SEQ

    def _sequence(self) -> SequenceClause:
        cursor = self.cursor
        first = cursor.token
        on = cursor.expression("a condition after ON", _SEQ_HINT) if cursor.take_type(TokenType.ON) else None
        if cursor.at_type(TokenType.USING):
            raise QueryError("USING is not allowed in a sequence", hint=_SEQ_HINT, place=cursor.place())
        cursor.expect("MODE", hint=_SEQ_HINT)
        mode: Literal["recent", "chronicle"] = "recent" if cursor.take("RECENT") else "chronicle"
        if mode == "chronicle":
            cursor.expect("CHRONICLE", hint=_SEQ_HINT, what="RECENT or CHRONICLE")
        outer = cursor.take("OUTER")
        within = cursor.extent(_SEQ_HINT, _AFTER_WITHIN) if cursor.take("WITHIN") else None
        return SequenceClause(mode, on, outer or cursor.take("OUTER"), within, place=cursor.place_since(first))


def _check_truth(truth: Name | None, sources: list[Name | Body]) -> None:
    names = [each.text.lower() for each in sources if isinstance(each, Name)]
    if truth is None or (len(sources) > 1 and truth.text.lower() in names):
        return
    fact = f'"{truth.text}" is not a stream of this union' if len(sources) > 1 else "TRUTH is given without a union"
    raise QueryError(fact, hint=_TRUTH_HINT, place=truth.place)


def _refuse_in_the_middle(laid: WindowClause | None, name: Name | None) -> None:
    if (found := laid or name) is not None:
        raise QueryError(
            f"a {'name' if laid is None else 'window'} is not allowed inside a union",
            hint="It applies to the whole union: put it after the last stream.",
            place=found.place,
        )


def _with_bare_window(read: FromClause) -> FromClause:
    """`FROM a, b WINDOW 10 minutes`: the window without brackets holds for all inputs, not for the last alone."""
    if not read.joins or (found := read.joins[-1].item.window) is None or not found.bare:
        return read
    last = replace(read.joins[-1], item=replace(read.joins[-1].item, window=None))
    return replace(read, joins=(*read.joins[:-1], last), window=found)
