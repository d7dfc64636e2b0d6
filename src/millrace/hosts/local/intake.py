"""The inputs of a run in real time: opened, paced together, and reopened where they are when more columns are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from millrace.connectors.files.file_input import FileInput
from millrace.connectors.files.pieces.file_piece import ReadPiece
from millrace.connectors.inputs import open_input, reopen_input
from millrace.connectors.opened_source import is_sourced
from millrace.connectors.partitioned_input import PartitionedInput
from millrace.connectors.push_pull import Asked, PolledInput
from millrace.connectors.pushed import Pushed
from millrace.connectors.stream_input import Position, StreamInput, read_schema
from millrace.errors import RequestError
from millrace.hosts.local.cut_input import CutInput
from millrace.hosts.local.pace import Now, PacedInput
from millrace.hosts.report import Ending
from millrace.kernel.clock import ReplayClock
from millrace.kernel.elements import Microseconds
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.physical.stages import Physical

_POLL = 20_000
"""Microseconds between two looks at sources that cannot say when they will have something."""

_POLL_SOURCE = 2_000
"""The same for a source: it has what came without being asked for it, so that a look costs little."""

RunInput = CutInput | PacedInput | PolledInput | PartitionedInput
"""An input that gives as many rows as it is asked for."""


class Intake:
    """The open inputs of a network's streams, by name; `wake` is called when rows have been pushed."""

    def __init__(
        self,
        plan: Physical,
        now: Now,
        feeds: Mapping[str, Iterable[Any]] | None = None,
        positions: Mapping[str, Position] | None = None,
        ending: Ending = "stopped",
        wake: Callable[[], None] = lambda: None,
        read: Callable[[str, int], Mapping[int, ReadPiece]] = lambda stream, count: {},
    ) -> None:
        self.inputs: dict[str, RunInput] = {}
        self._columns: dict[str, list[str]] = {}
        self._now = now
        self._ending = ending
        self._wake = wake
        self._read = read
        """The pieces of files that a stream has read, as its checkpoint has them."""
        self._feeds = feeds if feeds is not None else {}
        self.pace: ReplayClock | None = None
        self.prepare(plan, positions)()

    def prepare(self, plan: Physical, positions: Mapping[str, Position] | None = None) -> Callable[[], None]:
        """Open what a plan reads and is not open yet; the call it gives takes it into use and closes the rest."""
        columns = {stream.name: self._wanted(stream, plan) for stream in plan.network.streams()}
        inputs = {
            stream.name: self._input(stream, columns[stream.name], (positions or {}).get(stream.name))
            for stream in plan.network.streams()
        }

        def take_into_use() -> None:
            self.inputs, self._columns = inputs, columns
            self._start(each for each in inputs.values() if isinstance(each, PacedInput))

        return take_into_use

    def _wanted(self, stream: Stream, plan: Physical) -> list[str]:
        """The columns to read; an open input goes on with those it has while they suffice."""
        wanted, open_ones = plan.columns_read(stream.name), self._columns.get(stream.name, [])
        return open_ones if set(wanted) <= set(open_ones) else wanted

    def _input(self, stream: Stream, columns: list[str], position: Any) -> RunInput:
        given = self.inputs.get(stream.name)
        if given is not None:
            return given if columns == self._columns[stream.name] else self._again(given, stream, columns)
        feed = self._feeds.get(stream.name)
        if isinstance(feed, Asked):
            return self._polled(stream, columns, feed)
        if feed is None and is_sourced(stream):
            live = self._ending == "stopped"
            return PartitionedInput(stream, read_schema(stream, columns), position, live=live, now=self._now)
        if stream.replay is None:
            at, skip = _unpacked(position)
            return CutInput(self._opened(stream, columns, feed, at), skip)
        inner = self._opened(stream, columns, feed, position["inner"] if position else None)
        return PacedInput(stream, inner, self._now, position)

    def _opened(self, stream: Stream, columns: list[str], feed: Any, at: Position | None) -> StreamInput:
        read = self._read(stream.name, at["files"]) if at and "files" in at else None
        ends, live = self._ending == "end", self._ending == "stopped"
        return open_input(stream, columns, feed, at, read, ends=ends, live=live)

    def _polled(self, stream: Stream, columns: list[str], source: Asked) -> PolledInput:
        if stream.replay is not None:
            raise RequestError(
                f'stream "{stream.name}" is replayed, and its rows are asked for or pushed as they come',
                hint="Leave out replay_by, or give all its rows as a list.",
            )
        if isinstance(source, Pushed):
            source.wake = self._wake
        lasts, ends = self._ending == "stopped", self._ending == "end"
        return PolledInput(stream, read_schema(stream, columns), source, self._now, lasts=lasts, ends=ends)

    def _again(self, given: RunInput, stream: Stream, columns: list[str]) -> RunInput:
        """The input with other columns, at its position."""
        if isinstance(given, PolledInput):
            return self._polled(stream, columns, given.source)
        position = given.position()
        if isinstance(given, PartitionedInput):
            return given.again(read_schema(stream, columns), position)
        if isinstance(given, CutInput):
            at, skip = _unpacked(position)
            assert at is not None
            return CutInput(reopen_input(given.source, stream, columns, at), skip)
        inner = reopen_input(given.source, stream, columns, position["inner"])
        return PacedInput(stream, inner, self._now, position)

    def _start(self, inputs: Iterable[PacedInput]) -> None:
        """Start replayed streams at the pace of those that run, or with the earliest arrival among them."""
        waiting = [each for each in inputs if each.clock is None]
        if waiting and self.pace is None:
            began = self._now()
            origin = min((first for each in waiting if (first := each.first) is not None), default=began)
            self.pace = ReplayClock(origin, began)
        for each in waiting:
            assert self.pace is not None
            each.start(self.pace)

    def positions(self) -> dict[str, Any]:
        """Where each input stands."""
        return {name: each.position() for name, each in self.inputs.items()}

    def take_pieces(self) -> dict[str, dict[int, ReadPiece]]:
        """The pieces of files, by stream, that have been read since they were last taken."""
        taken = {}
        for name, each in self.inputs.items():
            source = each.source if isinstance(each, CutInput | PacedInput) else None
            if isinstance(source, FileInput) and source.unsaved:
                taken[name] = {number: source.pieces[number] for number in sorted(source.unsaved)}
                source.unsaved.clear()
        return taken

    def demand(self, streams: Iterable[str]) -> list[PolledInput]:
        """Have the polled streams among these polled at once; their inputs."""
        asked = [each for name in streams if isinstance(each := self.inputs.get(name), PolledInput)]
        for each in asked:
            each.demand()
        return asked

    def next_look(self) -> Microseconds | None:
        """When it is worth reading again, by the clock; None if pushed rows will wake the run."""
        return min(self._looks(self._now()), default=None)

    def _looks(self, now: Microseconds) -> Iterator[Microseconds]:
        for each in self.inputs.values():
            if isinstance(each, PartitionedInput):
                yield now + _POLL_SOURCE
            elif isinstance(each, PacedInput | PolledInput) and (due := each.due) is not None:
                yield due
            elif not each.finished and not (isinstance(each, PolledInput) and each.wakes):
                yield now + _POLL


def _unpacked(position: Position | None) -> tuple[Position | None, int]:
    """Where a chunk begins, and how many rows of it were read."""
    return (position["at"], position["cut"]) if position and "cut" in position else (position, 0)
