"""What a query reads from: streams, unions of them and subqueries, each with a window and a name."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.statements import Body, FromItem, Name, WindowClause
from millrace.language.grammar.window_parser import WindowParser

_TRUTH_HINT = "Name the stream of the union that wins where two have a row of one key and time: FROM a UNION b TRUTH b."
SELECT_HINT = "A query reads SELECT columns FROM stream [window] WHERE ... GROUP BY ... HAVING ..."


class FromParser(WindowParser):
    """Reads the items of FROM."""

    def body(self) -> Body:
        """Selects under UNION, and ORDER BY for the whole."""
        raise AssertionError("the parser of selects says what a body is")

    def from_item(self) -> FromItem:
        """`a UNION b UNION c [TRUTH c] [window] AS name`: what follows the last stream holds for the whole union."""
        first = self._curr
        sources: list[Name | Body] = []
        window: WindowClause | None = None
        alias: Name | None = None
        while True:
            found, window = self._source()
            sources.append(found)
            truth = self.name("a stream", _TRUTH_HINT) if self.take("TRUTH") else None
            alias = self.alias()
            window = window or self._window_after()
            alias = alias or self.alias()
            if not self._at_union_of_streams():
                break
            self._refuse_in_the_middle(window, alias or truth)
        self._check_truth(truth, sources)
        return FromItem(tuple(sources), window, alias, truth, place=self.place_since(first))

    def _check_truth(self, truth: Name | None, sources: list[Name | Body]) -> None:
        names = [each.text.lower() for each in sources if isinstance(each, Name)]
        if truth is None or (len(sources) > 1 and truth.text.lower() in names):
            return
        fact = f'"{truth.text}" is no stream of this union' if len(sources) > 1 else "TRUTH stands without a union"
        raise QueryError(fact, hint=_TRUTH_HINT, place=truth.place)

    def _source(self) -> tuple[Name | Body, WindowClause | None]:
        if self._match(TokenType.L_PAREN):
            body = self.body()
            self.close("the subquery")
            return body, None
        if (called := self.table_function()) is not None:
            return called
        name = self.name("a stream", "FROM takes a stream, a union of streams or a subquery in parentheses.")
        if self._match(TokenType.DOT):
            raise QueryError(
                f'stream "{name.text}" has no parts', hint="Streams have one name, without a dot.", place=name.place
            )
        return name, None

    def _window_after(self) -> WindowClause | None:
        if self._match(TokenType.L_BRACKET, advance=False):
            return self.window()
        return self.bare_window() if self.at("WINDOW") else None

    def _at_union_of_streams(self) -> bool:
        """Read UNION if a stream follows it; UNION before a select joins whole selects."""
        here = self._index
        if not self._match(TokenType.UNION):
            return False
        self.union_kind()
        if self._curr.token_type in (TokenType.SELECT, TokenType.L_PAREN):
            self._retreat(here)
            return False
        return True

    def union_kind(self) -> None:
        if self.at("DISTINCT"):
            raise NotYet("UNION DISTINCT has no engine part yet", hint="UNION keeps all rows.", place=self.place())
        self._match(TokenType.ALL)

    def _refuse_in_the_middle(self, window: WindowClause | None, alias: Name | None) -> None:
        place = window.place if window else alias.place if alias else None
        if place is not None:
            what = "a window" if window else "a name"
            raise QueryError(
                f"{what} stands in the middle of a union",
                hint="It holds for the whole union: put it after the last stream.",
                place=place,
            )

    def close(self, what: str) -> None:
        """Read the closing parenthesis."""
        if not self._match(TokenType.R_PAREN):
            raise self.wrong(f'")" at the end of {what}', SELECT_HINT)
