"""What of a stream may change while operators go on with the state that its rows have made, and what is said of it.

Rules:
- A stream may get and lose columns, be delivered in another way, and have other tunings: how its bound rises by its
  rows (DISORDER, PUNCTUATED BY, also of further times) or by silence (ETS, SKEW, LULL), which partitions it waits for,
  and how far ahead rows may be.
- A bound never goes back. What was promised stays: rows below the bound are late, whatever is declared now. The next
  row moves the bound by the new rule, if that takes it further.
- What its time is, where an order holds (PARTITIONED BY, PER), which further times there are and how columns are
  computed stay: the state of operators and the progress of partitions are made of it. Types, format and place stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.errors import RequestError
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, PARTITION, Microseconds
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.explain.labels import tuning_texts
from millrace.plan.explain.time_text import clock_text
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import QueryNetwork


@dataclass(frozen=True)
class StreamChange:
    """A stream that is declared in another way than it was; `bound` is where it stands."""

    old: Stream
    new: Stream
    bound: Microseconds

    @property
    def tunings(self) -> dict[str, dict[str, str]]:
        """The tunings that change, each as it was and as it is now."""
        before, after = tuning_texts(self.old.time), tuning_texts(self.new.time)
        return {what: {"before": before[what], "after": after[what]} for what in after if before[what] != after[what]}

    def line(self) -> str:
        """What changes, in words."""
        parts = [f"{each['before']} becomes {each['after']}" for each in self.tunings.values()]
        if parts and self.bound not in (NO_BOUND, END_OF_TIME):
            at = clock_text(self.bound, exact=True, unit=self.new.time.unit)
            parts.append(f"its bound is {at} and does not go back")
        parts += ["other columns"] if self.old.schema != self.new.schema else []
        parts += ["other options"] if _options(self.old) != _options(self.new) else []
        return f"stream {self.new.name} altered" + (f": {'; '.join(parts)}" if parts else "")


def streams_of(network: QueryNetwork) -> dict[str, Stream]:
    """The streams that the queries of a network read, by name."""
    return {stream.name: stream for stream in network.streams()}


def stream_changes(before: QueryNetwork, after: QueryNetwork, points: StreamProgress) -> tuple[StreamChange, ...]:
    """The streams of both networks that are declared in another way; `points` say how far they have come."""
    old = streams_of(before)
    return tuple(
        StreamChange(old[name], new, int(points[name]["bound"]) if name in points else NO_BOUND)
        for name, new in streams_of(after).items()
        if name in old and old[name] != new
    )


def check_streams(before: QueryNetwork, after: QueryNetwork) -> None:
    """Refuse streams that cannot go on as they are declared now."""
    old, new = streams_of(before), streams_of(after)
    for name in old.keys() & new.keys():
        reason = next(_reasons(old[name], new[name]), None)
        if reason is not None:
            raise RequestError(
                f'stream "{name}" cannot go on: {reason}',
                hint="Declare it as it was, or give the stream another name to have it read from its beginning.",
            )


def _reasons(old: Stream, new: Stream) -> Iterator[str]:
    """Why a stream cannot go on from its saved state."""
    computed = dict(old.time.computed), dict(new.time.computed)
    for column in new.schema:
        place = old.schema.get_field_index(column.name)
        if place < 0:
            continue
        if old.schema.field(place).type != column.type:
            yield f'the type of its column "{column.name}" has changed'
        if computed[0].get(column.name) != computed[1].get(column.name):
            yield f'its column "{column.name}" would be computed in another way'
    yield from _time_reasons(old.time, new.time)
    if old.connector.format != new.connector.format:
        yield f'it came from "{old.connector.format}" and would come from "{new.connector.format}"'
    if old.connector.options.get("path") != new.connector.options.get("path"):
        yield "it would be read from another path"
    if (old.replay and old.replay.column) != (new.replay and new.replay.column):
        yield "it would be replayed in another way"


def _time_reasons(old: TimeContract, new: TimeContract) -> Iterator[str]:
    """What of a time contract has changed that is no tuning, and why it cannot."""
    if (old.kind, old.column) != (new.kind, new.column):
        yield f"its time was {_time_text(old)} and would be {_time_text(new)}; state is kept by the times of rows"
    if old.partitions != new.partitions:
        was, now = (_columns_text(each.partitions, "PARTITIONED BY") for each in (old, new))
        yield f"it was {was} and would be {now}; how far each partition has come is known by these columns"
    if old.per != new.per:
        was, now = (_columns_text(each.per, "PER") for each in (old, new))
        yield f"its promises were {was} and would be {now}; they are kept by group"
    if {column for column, _ in old.also} != {column for column, _ in new.also}:
        yield "ALSO BY names other columns; how far a further time has come is known from the first row on"
    if old.late_by_window != new.late_by_window:
        became = "taken away" if old.late_by_window else "added"
        yield f"LATE BY WINDOW was {became}; windows that are open have rows by the other rule"


def _time_text(contract: TimeContract) -> str:
    return f"{contract.kind}" + (f' "{contract.column}"' if contract.column else "")


def _columns_text(columns: tuple[str, ...], clause: str) -> str:
    if not columns:
        return f"without {clause}"
    return "partitioned by its source" if columns == (PARTITION,) else f"{clause} ({', '.join(columns)})"


def _options(stream: Stream) -> tuple[Mapping[str, Any], Any]:
    return stream.connector.options, stream.replay
