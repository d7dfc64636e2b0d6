"""The option `max_future_skew` of a query: it guards the streams that the query reads, for all queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millrace.errors import Place, QueryError
from millrace.language.grammar.statements import Setting
from millrace.language.grammar.text.intervals import parse_interval
from millrace.plan.explain.time_text import interval_text
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork


def guarded(query: Query, setting: Setting, streams: dict[str, Stream]) -> Query:
    """The query over guarded streams; `streams` (by name in lower case) follow."""
    skew = parse_interval(setting.value.text)
    external = [
        each.name.lower()
        for each in QueryNetwork((query,)).streams()
        if each.time.kind == "external" and each.time.unit == "time"
    ]
    if not external:
        raise QueryError(
            'option "max_future_skew" is for external timestamps',
            hint="Leave it out: the times of its streams come from the system clock, or are numbers without a unit.",
            place=setting.key.place,
        )
    for name in external:
        known = streams[name].time.max_future_skew
        if known not in (None, skew):
            assert known is not None
            raise QueryError(
                f'stream "{streams[name].name}" has another max_future_skew already, {interval_text(known)}',
                hint="A stream has one for all queries that read it: give it once, or the same everywhere.",
                place=setting.value.place,
            )
        streams[name] = _with_skew(streams[name], skew)
    return QueryNetwork((query,)).with_streams({stream.name: stream for stream in streams.values()}).queries[0]


def as_running(streams: dict[str, Stream], queries: Sequence[Query]) -> dict[str, Stream]:
    """The streams with the guards that running queries have given them."""
    running = {each.name.lower(): each.time.max_future_skew for each in QueryNetwork(tuple(queries)).streams()}
    return {name: _with_skew(each, running.get(name, each.time.max_future_skew)) for name, each in streams.items()}


def refuse_new_guards(streams: dict[str, Stream], queries: Sequence[Query], place: Place | None) -> None:
    """Refuse a guard for a stream that has admitted rows without one."""
    for stream in QueryNetwork(tuple(queries)).streams():
        declared = streams.get(stream.name.lower(), stream)
        if declared.time.max_future_skew != stream.time.max_future_skew:
            raise QueryError(
                f'stream "{stream.name}" runs without max_future_skew',
                hint="Leave the option out, or set it when the network is started.",
                place=place,
            )


def _with_skew(stream: Stream, skew: int | None) -> Stream:
    return replace(stream, time=replace(stream.time, max_future_skew=skew))
