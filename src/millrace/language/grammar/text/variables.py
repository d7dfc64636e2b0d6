"""Variables of a text: `SET name = value` gives one, and `${name}` or `${name:default}` stands for its value.

Rules:
- A variable holds from its SET on. What is given beside the text wins over SET, and both over a default.
- Values are filled in before the text is read, in strings too, where a quote in a value is doubled. Comments stay.
- `${env:...}` and `${file:...}` are references to secrets, and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from millrace.errors import QueryError, did_you_mean, listed
from millrace.language.grammar.text.places import SourceText

_SECRETS = ("env", "file")
_PIECE = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:\\.|''|[^'\\])*'?|"(?:\\.|""|[^"\\])*"?|`[^`]*`?|\$\{[^}]*\}|;|\s+|[^-/'"`$;\s]+|.""",
    re.DOTALL,
)
_SET = re.compile(r"SET\s+(\w+)\s*=\s*('(?:''|[^'])*'|[^;]*?)\s*(?=;|\Z)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{(\w+)(?::([^}]*))?\}")


def filled(text: str, given: Mapping[str, str] | None = None) -> str:
    """A text with the values of its variables; `given` are further ones.

    >>> filled("SET n = 5; SELECT ${n} AS a, '${day:Monday}' AS b FROM ${s}", {"s": "clicks"})
    "SET n = 5; SELECT 5 AS a, 'Monday' AS b FROM clicks"
    """
    if "${" not in text:
        return text
    given = given or {}
    known, pieces = dict(given), list[str]()
    position, begins = 0, True
    while position < len(text):
        written = _SET.match(text, position) if begins else None
        found = written or _PIECE.match(text, position)
        assert found is not None, "any character is a piece"
        piece = found[0] if found[0].startswith(("--", "/*")) else _filled(text, found, known)
        if written is not None and written[1] not in given:
            known[written[1]] = _plain(_filled(text, written, known, 2))
        pieces.append(piece)
        begins = piece == ";" or (begins and (not piece.strip() or piece.startswith(("--", "/*"))))
        position = found.end()
    return "".join(pieces)


def _filled(text: str, found: re.Match[str], known: Mapping[str, str], group: int = 0) -> str:
    """A piece with the values of the variables in it."""

    def value(reference: re.Match[str]) -> str:
        name, default = reference[1], reference[2]
        if name in _SECRETS and default is not None:
            return reference[0]
        if name not in known and default is None:
            start = found.start(group) + reference.start()
            raise _unknown(name, known, text, start, found.start(group) + reference.end() - 1)
        filling = known.get(name, default or "")
        return filling.replace("'", "''") if found[group].startswith("'") else filling

    return _REFERENCE.sub(value, found[group])


def _plain(value: str) -> str:
    """The value of SET, without the quotes around a string."""
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def _unknown(name: str, known: Mapping[str, str], text: str, start: int, end: int) -> QueryError:
    names = f"The variables are {listed(known)}. " if known else ""
    ways = f"Give it with SET {name} = value or --var {name}=value, or write ${{{name}:default}}."
    hint = f"{did_you_mean(name, known)}{names}{ways}"
    return QueryError(f'variable "{name}" has no value', hint=hint, place=SourceText(text).place(start, end))
