"""Statements to a running network, bound against what has been declared before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from millrace.errors import QueryError
from millrace.language.catalogue import declare
from millrace.language.declarations.future_guard import as_running, refuse_new_guards
from millrace.language.declarations.streams import aside_queries
from millrace.language.declarations.user_code import refuse_user_code
from millrace.language.grammar.script_parser import parse_script
from millrace.language.grammar.statements import AggregateStatement, Declared, FunctionStatement, QueryStatement
from millrace.language.grammar.text.dialect import tokens_of
from millrace.language.grammar.text.places import SourceText
from millrace.language.grammar.text.variables import filled
from millrace.language.script import changes, parse_network
from millrace.plan.evolution.changes import Added, Amendment, Change, NetworkFile
from millrace.plan.nodes.query_network import Query


def declarations_of(text: str, known: str = "", *, queries: bool = False) -> str:
    """The declarations of a text (all but queries) as written, without those in `known`; with `queries`, these too.

    >>> declarations_of("CREATE SINK o TO csv OPTIONS (path 'o'); DROP QUERY q;")
    "CREATE SINK o TO csv OPTIONS (path 'o');"
    """
    before = {_key(each) for each in parse_script(known) if isinstance(each, Declared)}
    pieces, text = list[str](), filled(text)
    for statement, tokens in zip(parse_script(text), tokens_of(SourceText(text)), strict=True):
        wanted = isinstance(statement, Declared) and _key(statement) not in before
        if wanted or (queries and isinstance(statement, QueryStatement) and statement.name is not None):
            pieces.append(f"{text[tokens[0].start : tokens[-1].end + 1]};")
    return "\n".join(pieces)


def bind_changes(declared: str, text: str, queries: Sequence[Query], *, user_code: bool = True) -> Amendment:
    """The changes that a text makes to a running network with these declarations and queries: all, or an error.

    Without `user_code` the text may not name code to be loaded.

    >>> stream = "CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');"
    >>> bind_changes(stream, "ADD QUERY q AS SELECT k FROM s", []).changes[0].query.name
    'q'
    """
    check_user_code(text, allowed=user_code)
    text = filled(text)
    script, source = parse_script(text), SourceText(text)
    before = declare(parse_script(declared))
    known = declare(script, before)
    known = replace(known, streams=as_running(known.streams, queries))
    found = {query.name.lower(): query for query in queries}
    asked = tuple(changes(script, known, found, live=True))
    refuse_new_guards(known.streams, queries, source.place(0, len(text)))
    new = {name: stream for name, stream in known.streams.items() if name not in before.streams}
    asked += tuple(Added(each) for each in aside_queries(new, known.sinks, found))
    _check_outcome(asked, found, source)
    return Amendment(asked, f"{declared}\n;\n{declarations_of(text, queries=True)}")


def read_file(text: str, beside: str = "", *, user_code: bool = True) -> NetworkFile:
    """The network and declarations of a whole file, and those `beside` it unless the file declares the same name.

    >>> read_file("CREATE SINK o TO csv OPTIONS (path 'o');").network.queries
    ()
    """
    check_user_code(f"{text}\n;\n{beside}", allowed=user_code)
    network = parse_network(text)
    declared = declare(parse_script(text)).streams.values()
    streams = {each.name: each for each in (*declared, *network.streams())}
    text = filled(text)
    beside = declarations_of(beside, known=text, queries=True) if beside.strip(" \n;") else ""
    return NetworkFile(network, streams, f"{text}\n;\n{beside}")


def check_user_code(text: str, *, allowed: bool) -> None:
    """Refuse a text that names code to be loaded, unless that is allowed."""
    if not allowed:
        refuse_user_code(parse_script(text))


def _check_outcome(asked: Sequence[Change], queries: Mapping[str, Query], source: SourceText) -> None:
    """Refuse a request that changes nothing, or leaves no query."""
    if not asked:
        raise QueryError(
            "the request changes nothing",
            hint="Write ADD QUERY, DROP QUERY, ALTER QUERY or SHOW QUERIES.",
            place=source.end(),
        )
    if not queries:
        raise QueryError(
            "the last query cannot be dropped",
            hint="Add another one in the same request, or stop the run.",
            place=source.place(0, len(source.text)),
        )


def _key(statement: Declared) -> tuple[str, str]:
    """What identifies a declaration: its kind and name. Aggregates and functions share one set of names."""
    kind = "call" if isinstance(statement, AggregateStatement | FunctionStatement) else type(statement).__name__
    return kind, statement.name.text.lower()
