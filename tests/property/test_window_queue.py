"""Queues of windows against a naive reference: what leaves, in which order, and what is reported of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.kernel.aggregates.marked_aggregate import MarkedAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.elements import END_OF_TIME, MARK, TIME, Batch, Element, GroupPunctuation, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.state import Changes
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.windows.window_queue import WindowQueue
from tests.reference_windows_updates import FOREVER, NaiveAcceptance, NaiveWindows, Row, windows_of
from tests.unit.kernel.window_queues import Server, enter, queue_of

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("v",)),
    FunctionCall("least", "min", ("v",)),
    FunctionCall("greatest", "max", ("v",)),
]
Window = tuple[str, int]
Kind = TypeVar("Kind", bound=Operator)


@dataclass(frozen=True)
class Case:
    """Rows that come tick by tick, out of order by at most `disorder`, and the windows they fall in.

    All rows of a tick come by one input; those of another one often have the key and time of one of the last ticks.
    """

    ticks: list[list[Row]]
    disorder: int
    length: int
    slide: int
    mode: str
    tick: int | None
    ports: list[int]
    """The input of each row, by its value."""
    inputs: int
    truth: int | None

    def queue(self) -> WindowQueue:
        return queue_of(self.length, self.slide, self.mode, self.tick, QueueSettings(), self.inputs, self.truth)

    def port_of(self, row: Row) -> int:
        return self.ports[row[2]]

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.ticks for row in rows]

    def bounds(self) -> Iterator[int]:
        newest = 0
        for rows in self.ticks:
            newest = max([newest, *(time for _, time, _ in rows)])
            yield newest - self.disorder


@st.composite
def cases(draw: st.DrawFn, *modes: str) -> Case:
    disorder = draw(st.integers(0, 4))
    keys = st.sampled_from("abc"[: draw(st.integers(1, 3))])
    inputs = draw(st.sampled_from([1, 2, 2]))
    ticks: list[list[Row]] = []
    ports: list[int] = []
    newest, bound = 0, 0
    for number in range(draw(st.integers(1, 30))):
        rows: list[Row] = []
        port = draw(st.integers(0, inputs - 1))
        for _ in range(draw(st.integers(0, 3))):
            key, time = draw(keys), max(number + draw(st.integers(-disorder - 1, 2)), bound)
            known = [row for each in [*ticks[-3:], rows] for row in each if row[1] >= bound]
            if inputs > 1 and known and draw(st.booleans()):
                key, time, _ = draw(st.sampled_from(known))
            rows.append((key, time, len(ports)))
            ports.append(port)
            newest = max(newest, time)
        ticks.append(rows)
        bound = max(bound, newest - disorder)
    length = draw(st.integers(1, 6))
    slide = draw(st.integers(1, 7))
    mode = draw(st.sampled_from(modes or ("eager", "lazy")))
    tick = draw(st.sampled_from([None, 1, 1, 2, 4]))
    truth = draw(st.sampled_from([None, 0, 1, 1])) if inputs > 1 else None
    return Case(ticks, disorder, length, slide, mode, tick, ports, inputs, truth)


def saved_and_restored(make: Callable[[], Kind]) -> Callable[[Kind], Kind]:
    """Saves and goes on with a copy, made of all segments saved so far."""
    segments: dict[int, pa.Table] = {}

    def anew(operator: Kind) -> Kind:
        changes = operator.changes()
        segments.update(changes.added)
        for number in changes.removed:
            del segments[number]
        copy = make()
        copy.restore(Changes(dict(segments), (), changes.note))
        return copy

    return anew


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(case=cases(), cost=st.integers(1, 4), restores=st.booleans())
def test_one_row_at_a_time_is_what_the_key_transition_graph_says(case: Case, cost: int, restores: bool) -> None:
    between = saved_and_restored(case.queue) if restores else lambda queue: queue
    server = Server(case.queue(), cost, between, case.port_of)
    naive = NaiveWindows(case.length, case.slide, case.mode == "eager", case.tick, case.truth)
    busy = 0
    ticks = [*zip(case.ticks, case.bounds(), strict=True), ([], FOREVER)]
    while ticks or server.busy is not None:
        now = server.now
        rows, bound = ticks.pop(0) if ticks else ([], None)
        server.tick(rows, END_OF_TIME if bound == FOREVER else bound)
        if busy == now:
            naive.rest()
        for row in rows:
            naive.enter(case.port_of(row), row, now)
        if bound is not None:
            naive.advance(bound, now)
        while busy <= now:
            naive.rest()
            if not naive.serve(now):
                break
            busy = now + cost
        naive.tick_on(now)
    assert server.log == [_as_logged(case, entry) for entry in naive.log]
    assert not server.queue.held and not naive.waiting and not naive.ready
    _check_staleness(server, naive)


def _as_logged(case: Case, entry: tuple[object, ...]) -> tuple[object, ...]:
    if entry[0] == "close":
        _, mark, _, start = entry
        return "close", mark, start + case.length  # type: ignore[operator]
    return entry


def _check_staleness(server: Server, naive: NaiveWindows) -> None:
    now = server.now
    for row in server.queue.staleness(now).to_pylist():
        key = naive.keys[row["k"]]
        if key.first is None:
            continue
        assert abs(row["application_mean"] * (now - key.first) - key.application_area) < 1e-6
        assert abs(row["queue_mean"] * (now - key.first) - key.queue_area) < 1e-6


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(case=cases("eager", "lazy", "every", "random"), data=st.data())
def test_what_is_reported_of_a_window_is_all_that_was_accepted_of_it(case: Case, data: st.DataObject) -> None:
    run = _Run(case, data)
    for rows, bound in _cut(case, data):
        run.push(rows, bound)
    run.push([], END_OF_TIME)
    expected = run.batch_answers()
    for key, start, end, *answer in run.results:
        assert (end - start, answer) == (case.length, expected[key, start])
    starts = defaultdict(list)
    for key, start, *_ in run.results:
        starts[key].append(start)
    # Never back in time, and the last window of every key is reported.
    assert all(found == sorted(set(found)) for found in starts.values())
    last = {key: max(start for other, start in expected if other == key) for key, _ in expected}
    if case.mode != "random":
        assert {key: found[-1] for key, found in starts.items()} == last
    if case.mode == "every":
        assert len(run.results) == len(expected)
    run.check_end()


def _cut(case: Case, data: st.DataObject) -> Iterator[tuple[list[Row], int]]:
    """Rows of some ticks at once, and the bound behind them."""
    waiting: list[Row] = []
    for rows, bound in zip(case.ticks, case.bounds(), strict=True):
        waiting += rows
        if data.draw(st.booleans()):
            yield waiting, bound
            waiting = []
    yield waiting, bound


class _Run:
    """A queue and an aggregate above it, served now and then, saved and restored now and then."""

    def __init__(self, case: Case, data: st.DataObject) -> None:
        self.case, self.data = case, data
        # All windows take all rows: none makes room.
        truth = case.truth if case.mode in ("eager", "lazy") else None
        self.acceptance = NaiveAcceptance(case.length, case.slide, case.tick, truth)
        self.queue, self.aggregate = self._queue(), self._aggregate()
        self._save_queue = saved_and_restored(self._queue)
        self._save_aggregate = saved_and_restored(self._aggregate)
        self.results: list[tuple[str, int, int, int, int, int, int]] = []
        self.now = 0
        self.passed = -(2**63)

    def _queue(self) -> WindowQueue:
        return self.case.queue()

    def _aggregate(self) -> MarkedAggregate:
        frames = WindowGeometry(self.case.length, self.case.slide)
        return MarkedAggregate(Partials(frames, ["k"], AGGREGATIONS), self.case.length)

    def push(self, rows: list[Row], bound: int) -> None:
        """Rows and a bound come; the queue may be served, and both may be saved."""
        self.now += 1
        self.queue.on_time(self.now)
        enter(self.queue, rows, self.case.port_of)
        for row in rows:
            self.acceptance.enter(self.case.port_of(row), row)
        self._take(self.queue.on_punctuation(Punctuation(bound)))
        while self.queue.unfinished and (bound == END_OF_TIME or self.data.draw(st.booleans())):
            self._take(self.queue.on_more(self.data.draw(st.sampled_from([1, 2, 5, None]))))
            self.now += self.data.draw(st.integers(0, 2))
            self.queue.on_time(self.now)
            self.queue.on_rest()
            self.queue.check()
        if self.data.draw(st.booleans()):
            self.queue, self.aggregate = self._save_queue(self.queue), self._save_aggregate(self.aggregate)
            self.queue.on_time(self.now)
            self.queue.check()

    def _take(self, elements: Iterator[Element]) -> None:
        for element in elements:
            if isinstance(element, Batch):
                assert int(element.times.min()) >= self.passed
                self.acceptance.left.update(element.rows.column("v").to_pylist())
                assert not list(self.aggregate.on_batch(0, element))
            elif isinstance(element, GroupPunctuation):
                for result in self.aggregate.on_groups(element):
                    self._report(result, element)
            elif isinstance(element, Punctuation):
                assert element.until > self.passed
                self.passed = element.until

    def _report(self, result: Element, closer: GroupPunctuation) -> None:
        if not isinstance(result, Batch):
            assert result is closer
            return
        assert int(result.times.min()) >= self.passed
        assert set(result.rows.column(MARK).to_pylist()) <= set(closer.keys.column(MARK).to_pylist())
        rows = result.rows
        starts, ends = (rows.column(name).cast(pa.int64()).to_pylist() for name in ("window_start", "window_end"))
        assert [end - 1 for end in ends] == rows.column(TIME).to_pylist()
        columns = [rows.column(name).to_pylist() for name in ("k", "rows", "total", "least", "greatest")]
        self.results += list(zip(columns[0], starts, ends, *columns[1:], strict=True))

    def batch_answers(self) -> dict[Window, list[int]]:
        """What is answered of each window, if it is."""
        found: dict[Window, list[int]] = defaultdict(list)
        for _, (key, time, value) in self.acceptance.rows:
            for start in windows_of(time, self.case.length, self.case.slide):
                found[key, start].append(value)
        return {window: [len(values), sum(values), min(values), max(values)] for window, values in found.items()}

    def check_end(self) -> None:
        """Nothing is left, and every row is accounted for."""
        metrics = self.queue.queue_metrics(self.now)
        assert metrics.waiting == metrics.used == self.queue.held == self.aggregate.held == 0
        assert metrics.entered == len(self.case.rows) == metrics.let_go + metrics.superseded + metrics.shed
        assert [(each.entered, each.waiting) for each in metrics.by_input] == [
            (self.case.ports.count(port), 0) for port in range(self.case.inputs)
        ]
        assert self.passed == END_OF_TIME


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(case=cases(), data=st.data())
def test_batches_enter_as_their_rows_would_one_by_one(case: Case, data: st.DataObject) -> None:
    whole, singly = case.queue(), case.queue()
    for rows, bound in _cut(case, data):
        enter(whole, rows, case.port_of)
        for row in rows:
            enter(singly, [row], case.port_of)
        outputs = []
        limit = data.draw(st.integers(1, 9))
        for queue in (whole, singly):
            list(queue.on_punctuation(Punctuation(bound)))
            found = [element for element in queue.on_more(limit) if not isinstance(element, Punctuation)]
            queue.on_rest()
            outputs.append([_plain(element) for element in found])
        assert outputs[0] == outputs[1]
        # Which zones are used up is a matter of what came first.
        ours, theirs = (replace(queue.queue_metrics(0), allocated=0) for queue in (whole, singly))
        assert ours == theirs


def _plain(element: Element) -> object:
    if isinstance(element, Batch):
        return element.rows.to_pylist()
    assert isinstance(element, GroupPunctuation)
    return element.keys.to_pylist(), element.until.tolist()
