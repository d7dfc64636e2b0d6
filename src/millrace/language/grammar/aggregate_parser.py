"""CREATE AGGREGATE and FUNCTION: code in Python by its place, or blocks of SQL over the variables of a state."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.grammar.statements import (
    AggregateStatement,
    Assignment,
    Blocks,
    FunctionStatement,
    Name,
    TypeName,
)
from millrace.language.grammar.stream_parser import StreamParser

_HINT = (
    "Write CREATE AGGREGATE name(TYPE) RETURNS TYPE LANGUAGE PYTHON AS 'package.module:Class', or LANGUAGE SQL AS "
    "INITIALIZE (n = 0) ITERATE (n = n + 1) MERGE (n = n + other.n) TERMINATE n."
)
_FUNCTION_HINT = "Write CREATE FUNCTION name(TYPE) RETURNS TYPE LANGUAGE PYTHON AS 'package.module:function'."


class AggregateParser(StreamParser):
    """Reads the definition of an aggregate or a function."""

    def aggregate_statement(self) -> AggregateStatement:
        """`name(types) RETURNS type LANGUAGE ... AS ...`, after CREATE AGGREGATE."""
        name = self.name("the name of the aggregate", _HINT)
        parameters, returns = self._signature(_HINT)
        if self.take("PYTHON"):
            return AggregateStatement(name, parameters, returns, self._python_place("a class", _HINT))
        if not self.take("SQL"):
            raise self.wrong("PYTHON or SQL", _HINT)
        self._as(_HINT)
        return AggregateStatement(name, parameters, returns, self._blocks())

    def function_statement(self) -> FunctionStatement:
        """`name(types) RETURNS type LANGUAGE PYTHON AS ...`, after CREATE FUNCTION."""
        name = self.name("the name of the function", _FUNCTION_HINT)
        parameters, returns = self._signature(_FUNCTION_HINT)
        self.expect("PYTHON", hint=_FUNCTION_HINT)
        return FunctionStatement(name, parameters, returns, self._python_place("a function", _FUNCTION_HINT))

    def _signature(self, hint: str) -> tuple[tuple[TypeName, ...], Name]:
        """`(types) RETURNS type LANGUAGE`."""
        parameters = self.parenthesised(lambda: self._parameter(hint), hint)
        self.expect("RETURNS", hint=hint)
        returns = self._type()
        self.expect("LANGUAGE", hint=hint)
        return parameters, returns

    def _parameter(self, hint: str) -> TypeName:
        """`TYPE`, or a name and its type."""
        if self._next.token_type in (TokenType.COMMA, TokenType.R_PAREN, TokenType.L_PAREN):
            return TypeName(self._type())
        name = self.name("a parameter", hint)
        return TypeName(self._type(), name)

    def _as(self, hint: str) -> None:
        if not self._match(TokenType.ALIAS):
            raise self.wrong("AS", hint)

    def _python_place(self, what: str, hint: str) -> Name:
        self._as(hint)
        token = self._curr
        if token.token_type != TokenType.STRING:
            raise self.wrong(f"the place of {what} in quotes", hint)
        self._advance()
        return Name(token.text, place=self.source.of_token(token))

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
