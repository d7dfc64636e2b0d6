"""Where in a text stands what an error is about that a connector has raised: it knows names, and no places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from millrace.errors import Place
from millrace.language.grammar.script_parser import parse_script
from millrace.language.grammar.statements import ColumnDefinition, Name, Statement

_QUOTED = re.compile(r'"([^"]*)"')


def place_in(text: str, fact: str) -> Place | None:
    """The column, option, value or connector of a text that a fact names in double quotes, the first that it names.

    >>> text = "CREATE SINK o TO csv OPTIONS (pth 'out')"
    >>> place_in(text, 'format "csv" has no option "pth"').text, place_in(text, 'sink "o" has no path').text
    ('pth', 'csv')
    """
    named = set(_QUOTED.findall(fact))
    statements = parse_script(text)
    for parts in (_details, _connectors):
        found = [place for each in statements for name, place in parts(each) if name in named]
        if found:
            return found[0]
    return None


def _details(statement: Statement) -> Iterator[tuple[str, Place | None]]:
    """The columns of a declaration, and its options with their values."""
    for each in getattr(statement, "columns", ()):
        if isinstance(each, ColumnDefinition):
            yield each.name.text, each.name.place
    connector = getattr(statement, "connector", None)
    for setting in connector.options.values() if connector is not None else ():
        yield setting.key.text, setting.key.place
        yield setting.value.text, setting.value.place


def _connectors(statement: Statement) -> Iterator[tuple[str, Place | None]]:
    """The names of a declaration, which stand for its connector."""
    connector, name = getattr(statement, "connector", None), getattr(statement, "name", None)
    if connector is not None and isinstance(name, Name):
        yield name.text, connector.format.place
