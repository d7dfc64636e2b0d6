"""CREATE FUNCTION, bound; and calls of such functions."""

from __future__ import annotations

import re

from millrace.errors import QueryError
from millrace.kernel.columns.user_functions import UserFunction
from millrace.language.declarations.streams import type_of
from millrace.language.expressions.calls import KNOWN
from millrace.language.expressions.sql_functions import LATER_AGGREGATES
from millrace.language.grammar.statements import FunctionStatement, Name

_PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def bind_function(statement: FunctionStatement) -> UserFunction:
    """The function of a CREATE FUNCTION."""
    refuse_known(statement.name)
    kinds = tuple(type_of(each.type) for each in statement.parameters)
    path = import_path(statement.computes, "a function", "function")
    return UserFunction(statement.name.text, kinds, type_of(statement.returns), path)


def refuse_known(name: Name) -> None:
    """Refuse the name of a function that the language has."""
    if name.text.lower() in KNOWN or name.text.lower() in LATER_AGGREGATES:
        raise QueryError(f'"{name.text}" is a function already', hint="Choose another name.", place=name.place)


def import_path(written: Name, what: str, last: str) -> str:
    """Where Python code is, `package.module:name`; refuses any other text."""
    if _PLACE.fullmatch(written.text) is None:
        raise QueryError(
            f'"{written.text}" is no place of {what}', hint=f"Write 'package.module:{last}'.", place=written.place
        )
    return written.text
