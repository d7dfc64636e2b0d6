"""`LATE INTO name`: the rows of a stream that came too late, to be read as a stream or written to a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millrace.errors import QueryError
from millrace.kernel.progress.time_contract import LATE
from millrace.language.grammar.statements import StreamStatement
from millrace.plan.nodes.endpoints import Sink, Stream
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Scan


def check_late_names(statements: Sequence[StreamStatement]) -> None:
    """Refuse a late stream under a name that is taken."""
    taken = {each.name.text.lower() for each in statements}
    for name in (each.late_into for each in statements):
        if name is None:
            continue
        if name.text.lower() in taken:
            raise QueryError(
                f'"{name.text}" is declared twice',
                hint="LATE INTO names a stream that is not declared elsewhere.",
                place=name.place,
            )
        taken.add(name.text.lower())


def late_streams(streams: Mapping[str, Stream]) -> dict[str, Stream]:
    """The streams by the name, in lower case, under which their late rows can be read."""
    return {each.late_into.lower(): each for each in streams.values() if each.late_into is not None}


def late_queries(
    streams: Mapping[str, Stream], sinks: Mapping[str, Sink], queries: Mapping[str, Query]
) -> Iterator[Query]:
    """A query for each of the streams whose late rows have a sink of their name, and no query that reads them."""
    scans = [node for query in queries.values() for node in walk(query.root) if isinstance(node, Scan)]
    read = {(scan.stream.name, scan.outlet == LATE) for scan in scans}
    for name, stream in late_streams(streams).items():
        used = any(scan.stream.name == stream.name for scan in scans)
        if name in sinks and used and (stream.name, True) not in read:
            assert stream.late_into is not None
            yield Query(stream.late_into, Scan(stream, LATE), sinks[name])
