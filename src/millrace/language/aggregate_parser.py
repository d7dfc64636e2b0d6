"""CREATE AGGREGATE: a class in Python by its place, or blocks of SQL over the variables of a state."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.statements import AggregateStatement, Assignment, Blocks, Name, TypeName
from millrace.language.stream_parser import StreamParser

_HINT = (
    "Write CREATE AGGREGATE name(TYPE) RETURNS TYPE LANGUAGE PYTHON AS 'package.module:Class', or LANGUAGE SQL AS "
    "INITIALIZE (n = 0) ITERATE (n = n + 1) MERGE (n = n + other.n) TERMINATE n."
)


class AggregateParser(StreamParser):
    """Reads the definition of an aggregate."""

    def aggregate_statement(self) -> AggregateStatement:
        """`name(types) RETURNS type LANGUAGE ... AS ...`, after CREATE AGGREGATE."""
        name = self.name("the name of the aggregate", _HINT)
        parameters = self.parenthesised(self._parameter, _HINT)
        self.expect("RETURNS", hint=_HINT)
        returns = self._type()
        self.expect("LANGUAGE", hint=_HINT)
        if self.take("PYTHON"):
            return AggregateStatement(name, parameters, returns, self._python_place())
        if not self.take("SQL"):
            raise self.wrong("PYTHON or SQL", _HINT)
        self._as()
        return AggregateStatement(name, parameters, returns, self._blocks())

    def _parameter(self) -> TypeName:
        """`TYPE`, or a name and its type."""
        if self._next.token_type in (TokenType.COMMA, TokenType.R_PAREN, TokenType.L_PAREN):
            return TypeName(self._type())
        name = self.name("a parameter", _HINT)
        return TypeName(self._type(), name)

    def _as(self) -> None:
        if not self._match(TokenType.ALIAS):
            raise self.wrong("AS", _HINT)

    def _python_place(self) -> Name:
        self._as()
        token = self._curr
        if token.token_type != TokenType.STRING:
            raise self.wrong("the place of a class in quotes", _HINT)
        self._advance()
        return Name(token.text, self.source.of_token(token))

    def _blocks(self) -> Blocks:
        self.expect("INITIALIZE", hint=_HINT)
        initialize = self._assignments()
        self.expect("ITERATE", hint=_HINT)
        iterate = self._assignments()
        merge = self._assignments() if self.take("MERGE") else None
        self.expect("TERMINATE", hint=_HINT)
        return Blocks(initialize, iterate, merge, self.expression_here("an expression", _HINT))

    def _assignments(self) -> tuple[Assignment, ...]:
        found = self.parenthesised(self._assignment, _HINT)
        seen: set[str] = set()
        for each in found:
            if each.variable.text.lower() in seen:
                raise QueryError(
                    f'"{each.variable.text}" is assigned twice', hint="Keep one of them.", place=each.variable.place
                )
            seen.add(each.variable.text.lower())
        return found

    def _assignment(self) -> Assignment:
        variable = self.name("a variable", _HINT)
        if not self._match(TokenType.EQ):
            raise self.wrong('"="', _HINT)
        return Assignment(variable, self.expression_here("an expression", _HINT))
