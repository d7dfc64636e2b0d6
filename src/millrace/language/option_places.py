"""The place in a text that an error of a connector is about: a connector knows names, and no places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from millrace.errors import Place
from millrace.language.grammar.script_parser import parse_script
from millrace.language.grammar.statements import ColumnDefinition, Name, Statement

_QUOTED = re.compile(r'"([^"]*)"')


def place_in(text: str, fact: str) -> Place | None:
    """The column, option, value or connector that a fact names in double quotes, in the statement that has most of its
    names.

    >>> text = "CREATE SINK o TO csv OPTIONS (pth 'out')"
    >>> place_in(text, 'format "csv" has no option "pth"').text, place_in(text, 'sink "o" has no path').text
    ('pth', 'csv')
    """
    named = set(_QUOTED.findall(fact))
    found = [[(name, place) for name, place in _parts(each) if name in named] for each in parse_script(text)]
    # The statement that most of the names are of: another stream may have a column of the same name.
    most = max(found, key=lambda parts: len({name for name, _ in parts}), default=[])
    return most[0][1] if most else None


def _parts(statement: Statement) -> Iterator[tuple[str, Place | None]]:
    """The columns of a declaration, the keys of its options, its format, their values, its code; last its name, which
    stands for its connector.
    """
    for each in getattr(statement, "columns", ()):
        if isinstance(each, ColumnDefinition):
            yield each.name.text, each.name.place
    connector, name = getattr(statement, "connector", None), getattr(statement, "name", None)
    settings = connector.options.values() if connector is not None else ()
    yield from ((each.key.text, each.key.place) for each in settings)
    if connector is not None:
        yield connector.format.text, connector.format.place
    own = name.text if isinstance(name, Name) else ""
    yield from ((each.value.text, each.value.place) for each in settings if each.value.text != own)
    if isinstance(computes := getattr(statement, "computes", None), Name):
        yield computes.text, computes.place
    if connector is not None and isinstance(name, Name):
        yield name.text, connector.format.place
