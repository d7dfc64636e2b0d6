"""What holds time back, in words: which query waits for which stream, since when, and what releases it.

Rules:
- A verdict names the stream, and the partition or group of it, that is furthest behind; then what comes by itself (an
  ETS), what the source can do (a row, a promise), and what the user can declare.
- Lengths of time are counted back from the moment of the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millrace.hosts.why.waits import Awaited, Queued, StreamLag, Wait
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, PARTITION, Microseconds
from millrace.kernel.progress.order import PartitionState
from millrace.kernel.progress.time_contract import ASIDE, LATE, QUARANTINED, SEQUENCE
from millrace.plan.explain.time_text import clock_text, interval_text

_LEAST_SKEW = 1_000_000
"""The skew that is shown as an example where the disorder of a stream asks for no more."""
_SILENT_AFTER = 1_000_000
"""Microseconds without a row until a stream is called silent."""


def verdict(
    now: Microseconds,
    live: bool,
    streams: Mapping[str, StreamLag],
    waits: Mapping[str, Wait],
    queues: Mapping[str, Queued] | None = None,
) -> list[str]:
    """All findings, one line each."""
    lines = [_queue_text(query, each) for query, each in (queues or {}).items()]
    for query, wait in waits.items():
        lines += wait_lines(now, live, streams, query, wait)
    lines = lines or ["nothing waits"]
    return lines + [f"{name}: {_stream_text(stream, now)}" for name, stream in streams.items()]


def wait_lines(
    now: Microseconds, live: bool, streams: Mapping[str, StreamLag], query: str, wait: Wait
) -> Iterator[str]:
    """What a query waits for, in a line, and below it what is held, what releases it and what else is behind."""
    first, *others = wait.awaited
    yield from _WaitVerdict(now, live, streams[first.stream], first).lines(query, wait)
    yield from (f"  also behind: {_named(each)}, {_bound_text(each)}" for each in others)


def _queue_text(query: str, queued: Queued) -> str:
    what = ("key waits" if queued.waiting == 1 else "keys wait") if queued.keyed else "rows wait"
    waiting = f"{queued.waiting:,} {what} in the queue of {query}, the oldest for {length_text(queued.oldest)}"
    return f"{waiting}: the work behind it is slower than the updates come"


class _WaitVerdict:
    """A query that waits for a stream."""

    def __init__(self, now: Microseconds, live: bool, stream: StreamLag, awaited: Awaited) -> None:
        self.now = now
        self.live = live
        self.stream = stream
        self.awaited = awaited
        self.parts = stream.parts_behind(awaited)
        """Its partitions or groups that hold it back, the one furthest behind first."""
        self.part = self.parts[0] if self.parts else None

    def lines(self, query: str, wait: Wait) -> Iterator[str]:
        """Which stream the query waits for, how much is held, and what releases it."""
        yield f"{query} waits for {self._awaited_text()}, {self._stands()}"
        yield f"  {_held_text(wait.held - wait.partials, wait.partials)} held"
        yield f"  {self._release()}"
        yield from (f"  {each}" for each in self._ets_lines())
        yield from (f"  also behind: {self._part_text(each)}, {self._part_bound(each)}" for each in self.parts[1:])

    def _awaited_text(self) -> str:
        return _named(self.awaited) + ("" if self.part is None else f", {self._part_text(self.part)}")

    def _part_bound(self, part: PartitionState) -> str:
        heard = _heard(part.seen_at if part.greatest != NO_BOUND else NO_BOUND, self.now)
        if part.bound == NO_BOUND:
            return f"without a bound yet{heard}"
        return f"at {clock_text(part.bound, exact=True, unit=self.stream.unit)}{heard}"

    def _part_text(self, part: PartitionState) -> str:
        columns = self.stream.per or self.stream.partitions
        values = ("NULL" if each is None else each for each in part.values)
        if columns == (PARTITION,):
            return f"partition {next(values)}"
        named = ", ".join(f"{column} = {value}" for column, value in zip(columns, values, strict=True))
        return f"{'group' if self.stream.per else 'partition'} {named}"

    def _stands(self) -> str:
        """How far the stream has come, and since when."""
        stream, awaited, part = self.stream, self.awaited, self.part
        heard = stream.seen_at if part is None else part.seen_at
        if (stream if part is None else part).greatest == NO_BOUND and awaited.bound == NO_BOUND:
            return "which has sent no row yet"
        bound = part.bound if part is not None and stream.per else awaited.bound
        if bound == NO_BOUND:
            return f"which has promised nothing yet{_heard(heard, self.now)}"
        since = awaited.moved_at if part is None or not stream.per else NO_BOUND
        stands = f"stands at {_point(awaited, bound)}"
        if since != NO_BOUND:
            stands = f"has stood at {_point(awaited, bound)} for {length_text(self.now - since)}"
        return f"whose bound {stands}{_heard(heard, self.now)}"

    # What releases it

    def _release(self) -> str:
        stream, until, outlet = self.stream, self.awaited.until, self.awaited.outlet
        if until == END_OF_TIME:
            return "only later rows release them: no promise does"
        if outlet == SEQUENCE:
            more = until - max(self.awaited.bound, 0)
            return f"{more:,} {'row' if more == 1 else 'rows'} more release the first of them"
        whose = "" if self.part is None else f" of {self._part_text(self.part)}"
        if outlet in ASIDE or stream.kind != "external":
            return f"a row from the clock {clock_text(until, exact=True)} on releases the first of them"
        if not outlet and stream.promise is not None:
            promise = (
                f"a promise{whose} of {clock_text(until, exact=True, unit=stream.unit)} or later, by {stream.promise}"
            )
            return f"{promise}, releases the first of them"
        if not outlet and stream.rows is not None:
            again = f"{stream.rows:,} {'row' if stream.rows == 1 else 'rows'} after it"
            return (
                f"a row from {clock_text(until, exact=True, unit=stream.unit)} on and {again} release the first of them"
            )
        return self._release_by_row(until, whose)

    def _release_by_row(self, until: Microseconds, whose: str) -> str:
        disorder = self.stream.disorder if not self.awaited.outlet else 0
        from_then = clock_text(min(until + disorder, END_OF_TIME), exact=True, unit=self.stream.unit)
        line = f"a row{whose} from {from_then} on releases the first of them"
        if disorder and self.part is None and self.stream.greatest >= until:
            return f"{line}: it waits by design, for DISORDER {interval_text(disorder, self.stream.unit)}"
        return line

    def _ets_lines(self) -> Iterator[str]:
        """When an ETS releases rows if the stream stays silent, or what must be declared for one."""
        stream, at = self.stream, self.awaited.ets_at
        if self.awaited.until == END_OF_TIME or self.awaited.outlet == SEQUENCE:
            return
        if at is not None:
            when = f"at {clock_text(at, exact=True)}"
            left = f", in {length_text(at - self.now)}" if at > self.now else ", which is due"
            if stream.kind == "latent":
                yield f"the clock releases the first of them {when}{left}"
                return
            yield f"if it stays silent, an ETS {when}{left}, releases the first of them"
        elif stream.unit == "number":
            yield "the clock says nothing of a number: only rows or the end of the stream advance its bound"
        elif stream.ets == "none" and self.awaited.outlet not in ASIDE:
            yield f"Millrace does not advance its bound while it is silent: declare {_to_declare(stream)}"
        elif not self.live:
            yield "an ETS is made only in a run that lasts until it is stopped: this one read what was there"
        elif stream.greatest == NO_BOUND and stream.kind == "external":
            yield "an ETS by SKEW needs a first row: declare LULL INTERVAL 10 SECONDS beside it"


def _held_text(rows: int, partials: int) -> str:
    """How many rows and partial results, with their verb."""
    counted = [(rows, "row"), (partials, "partial result")]
    words = [f"{count:,} {what}{'' if count == 1 else 's'}" for count, what in counted if count] or ["0 rows"]
    return f"{' and '.join(words)} {'is' if rows + partials == 1 else 'are'}"


def _to_declare(stream: StreamLag) -> str:
    if stream.kind == "internal":
        return "ETS ON DEMAND"
    return (
        f"ETS ON DEMAND SKEW INTERVAL {interval_text(max(stream.disorder, _LEAST_SKEW))} (as late as its rows may be)"
    )


def _named(awaited: Awaited) -> str:
    what = {"": "", SEQUENCE: ", its row numbers", LATE: ", its late rows", QUARANTINED: ", its quarantined rows"}
    return f'stream "{awaited.stream}"{what.get(awaited.outlet, f", column {awaited.outlet}")}'


def _bound_text(awaited: Awaited) -> str:
    return "without a bound yet" if awaited.bound == NO_BOUND else f"at {_point(awaited, awaited.bound)}"


def _point(awaited: Awaited, bound: int) -> str:
    return f"row {bound:,}" if awaited.outlet == SEQUENCE else clock_text(bound, exact=True, unit=awaited.unit)


def _stream_text(stream: StreamLag, now: Microseconds) -> str:
    """How far a stream has come, in one line."""
    if stream.bound == END_OF_TIME:
        return f"has ended; {stream.contract}"
    words = [
        "no row yet"
        if stream.greatest == NO_BOUND
        else f"up to {clock_text(stream.greatest, exact=True, unit=stream.unit)}"
    ]
    if stream.bound != NO_BOUND:
        words.append(f"bound {clock_text(stream.bound, exact=True, unit=stream.unit)}")
    if stream.seen_at != NO_BOUND:
        words.append(f"heard {length_text(now - stream.seen_at)} ago")
    # Between two of its rows a stream has none to give, and is not silent.
    unheard = stream.seen_at == NO_BOUND or now - stream.seen_at >= _SILENT_AFTER
    words += ["silent"] if stream.silent and unheard else []
    if stream.parts:
        words.append(f"{stream.parts:,} {'groups' if stream.per else 'partitions'}")
    return f"{', '.join(words)}; {stream.contract}"


def _heard(seen_at: Microseconds, now: Microseconds) -> str:
    return "" if seen_at == NO_BOUND else f", last heard {length_text(now - seen_at)} ago"


def length_text(micros: Microseconds) -> str:
    """A length of time as people say it.

    >>> [length_text(each) for each in (10_200, 1_500_000, 40_000_000, 150_000_000, 7_260_000_000)]
    ['10 ms', '1.5 s', '40 s', '2 min 30 s', '2 h 1 min']
    """
    seconds = max(micros, 0) / 1e6
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next(place for place, (count, _) in enumerate(units) if count)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2] if count)
