"""A network that changes while it runs.

Rules:
- Anyone may ask, from any thread; the run's own thread carries a request out between two turns, and the asker waits.
- A request is a text. It is carried out as a whole, or refused as a whole while the run goes on untouched.
- An added query is answered over the rows whose time is not before its start: the greatest time that its streams had
  seen, plus one microsecond. Its answer is that of a batch evaluation over exactly those rows. Streams that nobody had
  read are read from their beginning.
- The history of changes is plain data: repeated on the network that a run began with, it gives the present one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event, Lock, get_ident
from typing import Protocol

from millrace.errors import MillraceError, NotYet, RequestError
from millrace.hosts.answers import Answer, Started
from millrace.kernel.elements import Microseconds
from millrace.kernel.executor import Executor
from millrace.plan.changes import Added, Altered, Bind, Change, Dropped, amended
from millrace.plan.nodes import SEQUENCE, Network, Query, Scan, walk
from millrace.plan.stages import Physical, physical, starting_at

Outlets = tuple[tuple[str, Microseconds], ...]
Starts = tuple[Microseconds, Outlets]
"""Where a query starts: a time of its streams, and points of the outlets that it reads."""
Start = Callable[[Query], Starts]
Answers = tuple[Answer, ...]


class Changing(Protocol):
    """A run that can be changed."""

    @property
    def executor(self) -> Executor:
        """The graph at work."""

    def settle(self) -> None:
        """Finish what is under way."""

    def prepare(self, plan: Physical) -> Callable[[], None]:
        """Open what a changed plan needs, or raise; the call it gives takes it into use."""

    def keep(self) -> None:
        """Make the change last, now that it has been made."""


@dataclass(frozen=True)
class Entry:
    """A request that was carried out, and where the queries that it added start, in order."""

    text: str
    starts: tuple[Starts, ...] = ()


@dataclass(frozen=True)
class _Proposal:
    """What the network would be after a request."""

    network: Network
    script: str
    entry: Entry
    answers: Answers


class Changes:
    """Requests to a running network, and the network as they have made it.

    `script` holds the declarations that a request may name, `bind` reads a request; without it there are no changes.
    """

    def __init__(self, network: Network, script: str = "", bind: Bind | None = None) -> None:
        self.network = network
        self.history: list[Entry] = []
        self.woken = Event()
        """Set when someone asks, so that a run which sleeps wakes up."""
        self.changing = Lock()
        """Held while the graph is not whole; who reports on it from another thread takes it too."""
        self.script = script
        self._bind = bind
        self._asked: deque[tuple[str, Future[Answers]]] = deque()
        self._lock = Lock()
        self._runner: int | None = None
        self._over = False
        self._failure: BaseException | None = None

    # For those who ask

    def ask(self, text: str) -> Answers:
        """Have a request carried out, and wait for the answer; raises why it was refused."""
        if get_ident() == self._runner:
            raise RequestError(
                "a run cannot be asked from inside itself", hint="Ask from another thread than the one that feeds it."
            )
        answer: Future[Answers] = Future()
        with self._lock:
            if self._over:
                raise _ended()
            self._asked.append((text, answer))
        self.woken.set()
        return answer.result()

    # For the run

    def repeat(self, history: Iterable[Entry]) -> None:
        """Make the changes of an earlier run again, before this one begins."""
        for entry in history:
            self._accept(self._proposed(entry.text, _in_turn(entry.starts)))

    def serve(self, run: Changing) -> None:
        """Carry out what has been asked."""
        self._runner = get_ident()
        while self._asked:
            text, answer = self._asked.popleft()
            try:
                answer.set_result(self.carry_out(text, run))
            except BaseException as error:
                answer.set_exception(error)
                if not isinstance(error, MillraceError):
                    raise
            self.check()

    def check(self) -> None:
        """Raise what failed in the run itself while a request was carried out: that is no refusal."""
        if self._failure is not None:
            raise self._failure

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error
            raise

    def carry_out(self, text: str, run: Changing) -> Answers:
        """Change the run as a text asks, or raise and leave it as it is."""
        self._work(run.settle)
        proposal = self._proposed(text, lambda query: _start(query, run.executor))
        if proposal.network != self.network:
            plan = physical(proposal.network)
            # Built once apart: whatever is wrong with the plan shows before the graph at work is touched.
            plan.whole()
            take_into_use = run.prepare(plan)
            with self.changing:
                self._shape(plan, run.executor)
                take_into_use()
                self._accept(proposal)
            self._work(run.keep)
        return proposal.answers

    def close(self) -> None:
        """Tell those who still wait that the run has ended."""
        with self._lock:
            self._over = True
        while self._asked:
            self._asked.popleft()[1].set_exception(_ended())

    # The network as it would be

    def _proposed(self, text: str, start: Start) -> _Proposal:
        if self._bind is None:
            raise NotYet("this run cannot be changed", hint="Stop it, and start it with other queries.")
        amendment = self._bind(self.script, text, self.network.queries)
        queries, answers, starts = self.network.queries, list[Answer](), list[Starts]()
        for change in amendment.changes:
            if isinstance(change, Added):
                starts.append(start(change.query))
                change = Added(starting_at(change.query, *starts[-1]))
            answers += _answers(change, queries)
            queries = amended(queries, change)
        return _Proposal(Network(queries), amendment.declared, Entry(text, tuple(starts)), tuple(answers))

    def _shape(self, plan: Physical, executor: Executor) -> None:
        """Make the graph at work that of the plan."""
        graph = executor.graph
        graph.keep(set(graph.nodes) - self._replaced(plan.network))
        plan.shape(graph)
        executor.adopt()
        if not any(node.chain for node in graph.nodes.values()):
            # Break nodes that were placed by measure go with the last query that asked for them.
            executor.set_breaks(())

    def _replaced(self, network: Network) -> set[str]:
        """The queries that another one of their name takes the place of."""
        after = {query.name: query for query in network.queries}
        return {
            query.name
            for query in self.network.queries
            if (other := after.get(query.name)) and _begun(other) != _begun(query)
        }

    def _accept(self, proposal: _Proposal) -> None:
        self.network, self.script = proposal.network, proposal.script
        self.history.append(proposal.entry)


def _in_turn(starts: Iterable[Starts]) -> Start:
    remaining = iter(starts)
    return lambda query: next(remaining)


def _start(query: Query, executor: Executor) -> Starts:
    """Where a query starts that joins now: after all that the streams it shares with others have seen."""
    scans = [each for each in walk(query.root) if isinstance(each, Scan) and each.outlet]
    points = {each.source: executor.outlet_start(each.stream.name, each.outlet) for each in scans}
    for outlet in {each.outlet for each in scans} - {SEQUENCE}:
        # Inputs of a union by a further column start together, as those by their own time do.
        sources = [each.source for each in scans if each.outlet == outlet]
        points |= dict.fromkeys(sources, max(points[source] for source in sources))
    return executor.start_point(_streams(query)), tuple(points.items())


def _begun(query: Query) -> tuple[object, ...]:
    """What makes a query another one than its namesake."""
    return query.root, query.since, query.outlets_since


def _answers(change: Change, queries: Sequence[Query]) -> Iterator[Answer]:
    """What is said of a change to these queries."""
    named = {query.name: query for query in queries}
    match change:
        case Added(query):
            yield Answer("added", _started(query), query.options)
        case Dropped(name):
            yield Answer("dropped", _started(named[name]))
        case Altered(name, options):
            yield Answer("altered", _started(named[name]), options)
        case _:
            yield from (Answer("runs", _started(query), query.options) for query in queries)


def _started(query: Query) -> Started:
    return Started(query.name, _streams(query), query.since)


def _streams(query: Query) -> tuple[str, ...]:
    return tuple(stream.name for stream in Network((query,)).streams())


def _ended() -> RequestError:
    return RequestError("the run has ended", hint="Start it again; with a checkpoint it goes on where it was.")
