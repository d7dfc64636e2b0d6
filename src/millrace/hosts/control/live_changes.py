"""A network that changes while it runs.

Rules:
- A request may come from any thread. The run's own thread carries it out between two turns; the caller waits.
- A request is a text. It is carried out as a whole, or refused as a whole while the run goes on untouched.
- An added query is answered over the rows whose time is not before its start: the greatest time that its streams had
  seen, plus one microsecond. Its answer is that of a batch evaluation over exactly those rows. Streams that no query
  had read are read from their beginning.
- The history of changes is plain data: repeated on the network that a run began with, it gives the present one.
- A run that goes on from a checkpoint with another file applies the differences to the network that ran (see
  plan/evolution); that is an entry of the history too, with how far the streams had come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event, Lock, get_ident
from typing import Any, TypeVar

from millrace.errors import MillraceError, NotYet, RequestError
from millrace.hosts.control.read_requests import RowsReply, is_read_request, read_reply
from millrace.hosts.control.replies import QueryStart, Reply, WaitsReply
from millrace.hosts.control.run_lock import RunLock
from millrace.hosts.host_run import HostRun
from millrace.kernel.graph.executor import Executor
from millrace.plan.evolution.changes import (
    Added,
    Altered,
    BindChanges,
    Change,
    Dropped,
    ReadFile,
    Refreshed,
    Shown,
    WaitsListed,
    amended,
)
from millrace.plan.evolution.evolution import Evolution, evolve, merged
from millrace.plan.evolution.start_points import StartPoints, StreamProgress, reduced, start_of
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.physical.stages import Physical, physical

Start = Callable[[Query], StartPoints]
Answers = tuple[Reply, ...]
Found = TypeVar("Found")


@dataclass(frozen=True)
class HistoryEntry:
    """A request that was carried out, and where the queries that it added start, in order.

    Or a whole file that took the place of the one before, if it says how far the streams had come.
    """

    text: str
    starts: tuple[StartPoints, ...] = ()
    points: StreamProgress | None = None

    def data(self) -> dict[str, Any]:
        """It as plain data."""
        if self.points is not None:
            return {"file": self.text, "points": self.points}
        return {"request": self.text, "starts": self.starts}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> HistoryEntry:
        """An entry of its plain data, which may have been JSON."""
        if "file" in data:
            return cls(data["file"], points=data["points"])
        return cls(data["request"], tuple(_starts(*each) for each in data["starts"]))


@dataclass(frozen=True)
class _Proposal:
    """What the network would be after a request."""

    network: QueryNetwork
    script: str
    entry: HistoryEntry
    answers: Answers
    refreshed: tuple[str, ...] = ()
    """The tables that are to be read again."""


class LiveChanges:
    """Requests to a running network, and the network as they have made it.

    `script` is the text of the network's file, `bind` reads a request; without it there are no changes. `read` reads a
    whole file; without it a run goes on from a checkpoint only with the queries that it was made with.
    """

    def __init__(
        self, network: QueryNetwork, script: str = "", bind: BindChanges | None = None, read: ReadFile | None = None
    ) -> None:
        self.network = network
        self.file = script
        """The text of the file that is in force."""
        self.history: list[HistoryEntry] = []
        self.ran: QueryNetwork | None = None
        """The network of the run that this one goes on from, as it was."""
        self.evolution: Evolution | None = None
        """What becomes of that network, where this run's is another one."""
        self.tables: Mapping[str, Any] = {}
        """The versions of the network's tables, as plain data (see hosts/tables)."""
        self.woken = Event()
        """Set by each request, so that a run which sleeps wakes up."""
        self.lock = RunLock()
        """Held while the run works or is changed, and by other threads while they look at it."""
        self.script = script
        """The declarations that a request may name."""
        self._first = script
        self._network: QueryNetwork | None = None
        """The network of the file that is in force, where it has been read."""
        self.changed: Callable[[str, Answers], None] = lambda text, answers: None
        """Called in the run's own thread when a request has changed the network."""
        self._bind, self._read = bind, read
        self._asked: deque[tuple[Callable[[HostRun], Any], Future[Any]]] = deque()
        self._lock = Lock()
        self._runner: int | None = None
        self._over = False
        self._failure: BaseException | None = None

    # For callers

    def ask(self, text: str) -> Answers:
        """Have a request carried out, and wait for the answer; raises why it was refused."""
        return self.do(lambda run: self.carry_out(text, run))

    @property
    def over(self) -> bool:
        """True if the run has ended."""
        return self._over

    def do(self, work: Callable[[HostRun], Found]) -> Found:
        """Have work done in the run's own thread, between two turns, and wait for its result."""
        if get_ident() == self._runner:
            raise RequestError(
                "the thread of a run cannot ask the run itself",
                hint="Ask from a thread other than the one that feeds it.",
            )
        answer: Future[Found] = Future()
        with self._lock:
            if self._over:
                raise _ended()
            self._asked.append((work, answer))
        self.woken.set()
        return answer.result()

    # For the run

    @property
    def renamed(self) -> Mapping[str, str]:
        """What queries were called in the run that this one goes on from, by their names now."""
        return {} if self.evolution is None else self.evolution.renamed

    def streams_of(self, query: str) -> tuple[str, ...]:
        """The names of the streams that a query reads; none if there is no such query."""
        return tuple(name for each in self.network.queries if each.name == query for name in _streams(each))

    def repeat(self, history: Iterable[HistoryEntry], *, spread: bool = False) -> None:
        """Make the changes of an earlier run again, before this one begins."""
        for entry in history:
            if entry.points is not None:
                self._rewrite(entry.text, entry.points, spread=spread)
            else:
                self._accept(self._proposed(entry.text, _in_turn(entry.starts)))

    def saved(self) -> dict[str, Any]:
        """The first text and the history, as plain data; no text where this run has none that it could be read by."""
        text = None if self._read is None else self._first
        return {"text": text, "history": [entry.data() for entry in self.history], "tables": self.tables}

    def can_follow(self, saved: Mapping[str, Any]) -> bool:
        """True if this run may have other queries than the one that saved this."""
        return self._read is not None and saved["text"] is not None

    def resume(self, saved: Mapping[str, Any], points: StreamProgress, *, spread: bool = False) -> Evolution | None:
        """Go on from an earlier run: its changes are made again, and what is different in this run's file is applied.

        `points` say how far its streams had come, `spread` whether rows are spread over buckets. None where nothing
        is different; raises where a stream cannot go on, and leaves all as it was.
        """
        history = [HistoryEntry.of(each) for each in saved["history"]]
        self.tables = saved["tables"]
        if self._read is None or saved["text"] is None:
            self.repeat(history, spread=spread)
            self.ran = self.network
            return None
        earlier = LiveChanges(self._read(saved["text"], "").network, saved["text"], self._bind, self._read)
        earlier.repeat(history, spread=spread)
        ran, other = earlier.network, self.file != earlier.file
        evolution = earlier._rewrite(self.file, reduced(points), spread=spread) if other else None
        self.network, self.script, self.history = earlier.network, earlier.script, earlier.history
        self._first, self.ran, self.evolution = earlier._first, ran, evolution
        return evolution

    def _rewrite(self, text: str, points: StreamProgress, *, spread: bool) -> Evolution | None:
        """Let a new file take the place of the one in force."""
        assert self._read is not None, "a history with files comes with a reader"
        # What follows the file in the script are declarations that requests have made.
        old = self._network or self._read(self.file, "").network
        new = self._read(text, self.script.removeprefix(self.file))
        after = merged(self.network, old, new.network, new.streams)
        evolution = evolve(self.network, after, points, spread=spread)
        self.network = self.network if evolution is None else evolution.network
        self.file, self.script, self._network = text, new.declared, new.network
        self.history.append(HistoryEntry(text, points=points))
        return evolution

    def serve(self, run: HostRun) -> None:
        """Carry out what has been asked."""
        self._runner = get_ident()
        while self._asked:
            work, answer = self._asked.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(work(run))
            except BaseException as error:
                answer.set_exception(error)
                if not isinstance(error, MillraceError):
                    raise
            self.check()

    def check(self) -> None:
        """Raise what failed in the run itself while a request was carried out: that is not a refusal."""
        if self._failure is not None:
            raise self._failure

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error
            raise

    def carry_out(self, text: str, run: HostRun) -> Answers:
        """Change the run as a text asks, or raise and leave it as it is; or read what a text in JSON asks for."""
        if is_read_request(text):
            return (read_reply(text, run, self.network.queries),)
        self._work(run.settle)
        proposal = self._proposed(text, lambda query: start_of(query, run.points()))
        if proposal.network != self.network:
            plan = physical(proposal.network)
            # Built once apart: whatever is wrong with the plan shows before the graph at work is touched.
            plan.whole()
            take_into_use = run.prepare(plan)
            with self.lock.work():
                run.shape(plan)
                take_into_use()
                self._accept(proposal)
            self._work(run.keep)
        for table in proposal.refreshed:
            run.refresh_table(table)
        self.changed(text, proposal.answers)
        return tuple(WaitsReply.of(run.lag()) if isinstance(each, WaitsReply) else each for each in proposal.answers)

    def proposed(self, text: str, run: HostRun) -> tuple[QueryNetwork, Answers]:
        """What the network would be after a request, and the answers to it; nothing is changed."""
        self._work(run.settle)
        proposal = self._proposed(text, lambda query: start_of(query, run.points()))
        physical(proposal.network).whole()
        return proposal.network, proposal.answers

    def close(self) -> None:
        """Refuse the requests that still wait: the run has ended."""
        with self._lock:
            self._over = True
        while self._asked:
            _, answer = self._asked.popleft()
            if answer.set_running_or_notify_cancel():
                answer.set_exception(_ended())

    # The network as it would be

    def _proposed(self, text: str, start: Start) -> _Proposal:
        if self._bind is None:
            raise NotYet("this run cannot be changed", hint="Stop it, and start it with other queries.")
        amendment = self._bind(self.script, text, self.network.queries)
        queries, answers, starts = self.network.queries, list[Reply](), list[StartPoints]()
        refreshed: list[str] = []
        for change in amendment.changes:
            if isinstance(change, Added):
                starts.append(start(change.query))
                change = Added(change.query.starting_at(*starts[-1]))
            answers += _answers(change, queries)
            refreshed += [change.table] if isinstance(change, Refreshed) else []
            queries = amended(queries, change)
        entry = HistoryEntry(text, tuple(starts))
        return _Proposal(QueryNetwork(queries), amendment.declared, entry, tuple(answers), tuple(refreshed))

    def _accept(self, proposal: _Proposal) -> None:
        self.network, self.script = proposal.network, proposal.script
        self.history.append(proposal.entry)


def reshape(executor: Executor, before: QueryNetwork, plan: Physical) -> None:
    """Make a graph at work, which was that of a network, what a plan says."""
    graph = executor.graph
    graph.keep(set(graph.nodes) - _replaced(before, plan.network))
    plan.shape(graph)
    executor.adopt()
    if not any(node.chain for node in graph.nodes.values()):
        # Break nodes that were placed by measure go with the last query that asked for them.
        executor.set_breaks(())


def _replaced(before: QueryNetwork, after: QueryNetwork) -> set[str]:
    """The queries that another query of their name replaces."""
    named = {query.name: query for query in after.queries}
    return {
        query.name for query in before.queries if (other := named.get(query.name)) and _begun(other) != _begun(query)
    }


def _in_turn(starts: Iterable[StartPoints]) -> Start:
    remaining = iter(starts)
    return lambda query: next(remaining)


def _starts(time: int, outlets: Iterable[Sequence[Any]]) -> StartPoints:
    return time, tuple((name, point) for name, point in outlets)


def _begun(query: Query) -> tuple[object, ...]:
    """What must be equal for two queries of one name to be the same."""
    return query.root, query.since, query.outlets_since, query.tree


def _answers(change: Change, queries: Sequence[Query]) -> Iterator[Reply]:
    """The replies to a change of these queries."""
    named = {query.name: query for query in queries}
    match change:
        case Added(query):
            yield Reply("added", _started(query), query.options)
        case Dropped(name):
            yield Reply("dropped", _started(named[name]))
        case Altered(name, options):
            yield Reply("altered", _started(named[name]), options)
        case Refreshed(table):
            yield Reply("refreshed", QueryStart(table, ()))
        case WaitsListed():
            yield WaitsReply("waits", QueryStart("", ()))
        case Shown(_, rows):
            yield RowsReply("read", QueryStart("", ()), rows=rows)
        case _:
            yield from (Reply("runs", _started(query), query.options) for query in queries)


def _started(query: Query) -> QueryStart:
    return QueryStart(query.name, _streams(query), query.since)


def _streams(query: Query) -> tuple[str, ...]:
    return tuple(stream.name for stream in QueryNetwork((query,)).streams())


def _ended() -> RequestError:
    return RequestError("the run has ended", hint="Start it again; with a checkpoint it goes on where it was.")
