"""The window aggregate against windows filled one row at a time."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate
from millrace.kernel.aggregates.panes import grouped_panes, pane_meter, panes
from millrace.kernel.aggregates.panes.window_geometry import CalendarWindows, Instants, WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    Punctuation,
)
from tests.unit.kernel.check_operator import (
    Script,
    check_operator,
    outputs,
    random_group_script,
    random_script,
    rows_of,
)

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("last", "last", ("n",)),
]
SHAPES = [(10, 10, 0), (30, 10, 3), (10, 3, 0), (10, 25, -4), (1, 1, 0), (64, 2, 1), (400, 7, 0), (40, 1, 0)]

Row = tuple[str | None, int | None, int]
Reported = list[tuple[int, int, str | None, int, int | None]]


def aggregate(
    length: int, slide: int, origin: int = 0, *, buffered: bool = False, groups: tuple[str, ...] = ()
) -> WindowAggregate:
    partials = Partials(WindowGeometry(length, slide, origin), ["k"], AGGREGATIONS)
    return WindowAggregate(partials, buffered=buffered, groups=groups)


class Reference:
    """Windows as lists of rows, reported when a bound of the stream or of their group passes their end."""

    def __init__(self, length: int, slide: int, origin: int) -> None:
        self.length, self.slide, self.origin = length, slide, origin
        self.open: dict[tuple[int, str | None], list[Row]] = defaultdict(list)

    def add(self, row: Row) -> None:
        first = (row[2] - self.origin - self.length) // self.slide
        for number in range(first, (row[2] - self.origin) // self.slide + 1):
            start = number * self.slide + self.origin
            if start <= row[2] < start + self.length:
                self.open[start, row[0]].append(row)

    def close(self, until: Callable[[str | None], int]) -> Reported:
        closing = [(start, key) for start, key in self.open if start + self.length <= until(key)]
        return sorted((self._result(start, key, self.open.pop((start, key))) for start, key in closing), key=repr)

    def next_end(self) -> int | None:
        return min((start + self.length for start, _ in self.open), default=None)

    def _result(self, start: int, key: str | None, rows: list[Row]) -> tuple[int, int, str | None, int, int | None]:
        numbers = [number for _, number, _ in rows if number is not None]
        return start, start + self.length, key, len(rows), sum(numbers) if numbers else None


def steps(script: Script) -> Iterator[tuple[Element, Callable[[str | None], int]]]:
    """Each element, and the bounds that it brings."""
    for _, element in script.steps:
        if isinstance(element, Punctuation):
            yield element, lambda key, until=element.until: until
        elif isinstance(element, GroupPunctuation):
            bounds = dict(zip(element.keys.column(0).to_pylist(), element.until.tolist(), strict=True))
            yield element, lambda key, bounds=bounds: bounds.get(key, NO_BOUND)
        else:
            yield element, lambda key: NO_BOUND


def reported(elements: list[Element]) -> Reported:
    rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    for row in rows:
        assert row[TIME] == _integer(row["window_end"]) - 1
    return sorted(
        (
            (_integer(row["window_start"]), _integer(row["window_end"]), row["k"], row["rows"], row["total"])
            for row in rows
        ),
        key=repr,
    )


def _integer(moment: object) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", tz="UTC")).value)


def check_against_reference(operator: WindowAggregate, reference: Reference, script: Script) -> None:
    for element, bound in steps(script):
        if isinstance(element, Batch):
            for row in element.rows.to_pylist():
                reference.add((row["k"], row["n"], row[TIME]))
        found = outputs(operator, Script(((0, element),)))
        assert reported(found) == reference.close(bound)
        assert operator.wanted() == reference.next_end()
    assert operator.held == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("length", "slide", "origin"), SHAPES)
@pytest.mark.parametrize("buffered", [False, True], ids=["partials", "buffered"])
def test_windows_are_reported_when_a_bound_passes_their_end(
    length: int, slide: int, origin: int, buffered: bool, seed: int
) -> None:
    operator = aggregate(length, slide, origin, buffered=buffered)
    check_against_reference(operator, Reference(length, slide, origin), random_script(seed, ports=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("length", "slide", "origin"), SHAPES)
def test_windows_that_share_their_parts_are_the_same(
    length: int, slide: int, origin: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panes, "_PAIRS", 5)
    monkeypatch.setattr(panes, "_SHARED_ROWS", 50)
    operator = aggregate(length, slide, origin)
    check_against_reference(operator, Reference(length, slide, origin), random_script(seed, ports=1, batches=30))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("length", "slide", "origin"), SHAPES)
def test_a_window_of_a_group_is_reported_once_by_whichever_bound_passes_its_end(
    length: int, slide: int, origin: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped_panes, "_FEW", 2)
    operator = aggregate(length, slide, origin, groups=("k",))
    check_against_reference(operator, Reference(length, slide, origin), random_group_script(seed))


@pytest.mark.slow
def test_windows_that_share_their_parts_keep_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "_PAIRS", 5)
    check_operator(lambda: aggregate(40, 2), seeds=4)


@pytest.mark.slow
@pytest.mark.parametrize(("length", "slide", "origin"), SHAPES)
def test_bounds_of_groups_keep_the_contract(length: int, slide: int, origin: int) -> None:
    check_operator(lambda: aggregate(length, slide, origin, groups=("k",)), scripts=random_group_script, seeds=2)


@pytest.mark.slow
@pytest.mark.parametrize(("length", "slide", "origin"), SHAPES)
def test_a_buffered_aggregate_keeps_the_contract(length: int, slide: int, origin: int) -> None:
    check_operator(lambda: aggregate(length, slide, origin, buffered=True), seeds=2)


class Restless(pane_meter.PaneMeter):
    """A meter that wants the other whenever it is asked."""

    def smaller_as_rows(self, buffered: bool) -> bool | None:
        return not buffered if self.rows and self.partials else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("length", "slide", "origin"), [each for each in SHAPES if each[0] > each[1]])
def test_windows_are_the_same_however_often_panes_and_rows_change_over(
    length: int, slide: int, origin: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panes, "PaneMeter", Restless)
    monkeypatch.setattr(panes, "_PAIRS", 50)
    partials = Partials(WindowGeometry(length, slide, origin), ["k"], AGGREGATIONS)
    script = random_script(seed, ports=1, batches=30)
    check_against_reference(WindowAggregate(partials, adapts=True), Reference(length, slide, origin), script)
    check_operator(lambda: WindowAggregate(partials, adapts=True), seeds=1)


@pytest.mark.slow
def test_an_aggregate_goes_on_with_what_takes_less_memory() -> None:
    """A percentile takes hundreds of bytes: with a row per pane rows are smaller, with many rows partials are."""
    partials = Partials(WindowGeometry(20, 1), ["k"], [FunctionCall("p", "approx_percentile", ("n",))])
    adapting, fixed = WindowAggregate(partials, adapts=True), WindowAggregate(partials)
    kept, sizes = [], []
    for time in range(300):
        count = 1 if time < 200 else 400
        rows = {"k": ["a"] * count, "n": [float(time)] * count, TIME: [time] * count}
        for operator in (adapting, fixed):
            list(operator.on_batch(0, Batch(pa.record_batch(rows))))
        found, expected = (list(each.on_punctuation(Punctuation(time + 1))) for each in (adapting, fixed))
        assert [each.rows for each in found if isinstance(each, Batch)] == [
            each.rows for each in expected if isinstance(each, Batch)
        ]
        kept.append(adapting.buffered)
        sizes.append(adapting.state_bytes / fixed.state_bytes)
    assert [kept[20], kept[199], kept[299]] == [False, True, False]
    assert sum(first != second for first, second in itertools.pairwise(kept)) == 2
    assert sizes[199] < 0.7
    assert max(sizes[210:]) < 2


@pytest.mark.parametrize("buffered", [False, True], ids=["partials", "buffered"])
def test_a_users_aggregate_without_merge_sees_the_rows_of_a_window_in_order_of_time(buffered: bool) -> None:
    joined = PythonAggregate("joined", (pa.string(),), pa.string(), "tests.unit.kernel.user_classes:Joined")
    partials = Partials(WindowGeometry(20, 10), [], [FunctionCall("all", joined, ("k",))])
    operator = WindowAggregate(partials, buffered=buffered)
    for names, times in ((["c", "a"], [12, 1]), (["d", "b"], [25, 5])):
        list(operator.on_batch(0, Batch(pa.record_batch({"k": names, TIME: times}))))
    found = outputs(operator, Script(((0, Punctuation(END_OF_TIME)),)))
    rows = [(row[TIME], row["all"]) for each in found if isinstance(each, Batch) for row in each.rows.to_pylist()]
    assert [text.replace(",", "").replace(" ", "") for _, text in sorted(rows)] == ["ab", "abc", "cd", "d"]


def test_groups_of_one_hash_have_bounds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_panes, "hashes_of", lambda rows, keys: np.zeros(rows.num_rows, np.int64))
    for seed in range(4):
        operator = aggregate(30, 10, groups=("k",))
        check_against_reference(operator, Reference(30, 10, 0), random_group_script(seed))


def test_a_group_may_have_further_keys() -> None:
    partials = Partials(WindowGeometry(10, 10), ["n", "k"], AGGREGATIONS[:1])
    operator = WindowAggregate(partials, groups=("k",))
    rows = pa.record_batch({"k": ["a", "a", "b"], "n": [1, 2, 1], TIME: [1, 2, 3]})
    list(operator.on_batch(0, Batch(rows)))
    promise = GroupPunctuation(pa.record_batch({"device": ["a"]}), np.array([10]))
    closed, passed_on = operator.on_groups(promise)
    assert passed_on is promise
    assert isinstance(closed, Batch)
    assert sorted(closed.rows.column("n").to_pylist()) == [1, 2]
    assert operator.wanted() == 10
    assert operator.held == 1


def test_a_calendar_of_groups_does_not_grow_while_the_stream_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_panes, "_FEW", 10)
    operator = aggregate(10, 10, groups=("k",))
    key = pa.record_batch({"k": ["a"]})
    list(operator.on_batch(0, Batch(pa.record_batch({"k": ["stuck"], "n": [1], TIME: [0]}))))
    for time in range(0, 1_500, 10):
        list(operator.on_batch(0, Batch(pa.record_batch({"k": ["a"], "n": [1], TIME: [time]}))))
        list(operator.on_groups(GroupPunctuation(key, np.array([time + 10]))))
    assert operator.held == 1
    assert operator.state_bytes < 1_000


def test_rows_of_a_group_without_promises_wait_for_the_stream() -> None:
    operator = aggregate(10, 10, groups=("k",))
    list(operator.on_batch(0, Batch(pa.record_batch({"k": ["a"], "n": [1], TIME: [5]}))))
    promise = GroupPunctuation(pa.record_batch({"k": ["b"]}), np.array([100]))
    assert list(operator.on_groups(promise)) == [promise]
    closed, bound = operator.on_punctuation(Punctuation(10))
    assert isinstance(closed, Batch) and bound == Punctuation(10)


def test_windows_of_rows_have_numbers_as_bounds() -> None:
    operator = WindowAggregate(Partials(WindowGeometry(4, 2), [], AGGREGATIONS[:1]), has_numbers=True)
    list(operator.on_batch(0, Batch(pa.record_batch({"n": [1] * 5, TIME: list(range(5))}))))
    found = [each for each in operator.on_punctuation(Punctuation(END_OF_TIME)) if isinstance(each, Batch)]
    rows = [(row["window_start"], row["window_end"], row["rows"]) for each in found for row in each.rows.to_pylist()]
    assert sorted(rows) == [(-2, 2, 2), (0, 4, 4), (2, 6, 3), (4, 8, 1)]


def test_instants_have_no_bounds_and_keep_their_time() -> None:
    operator = WindowAggregate(Partials(Instants(), ["k"], AGGREGATIONS[:1]))
    rows = pa.record_batch({"k": ["a", "a", "b"], TIME: [-3, -3, 7], ARRIVED: [1, 2, 3]})
    list(operator.on_batch(0, Batch(rows)))
    closed, _ = operator.on_punctuation(Punctuation(8))
    assert isinstance(closed, Batch)
    assert closed.rows.schema.names == ["k", "rows", TIME, ARRIVED]
    assert sorted(map(tuple, (row.values() for row in closed.rows.to_pylist()))) == [
        ("a", 2, -3, NO_BOUND),
        ("b", 1, 7, NO_BOUND),
    ]


@pytest.mark.parametrize("groups", [(), ("k",)])
def test_calendar_windows_keep_the_contract(groups: tuple[str, ...]) -> None:
    day = 86_400_000_000
    script = random_script(3, ports=1)
    far = Script(tuple((port, _slowed(element, day)) for port, element in script.steps))
    make = lambda: WindowAggregate(Partials(CalendarWindows(1), ["k"], AGGREGATIONS), groups=groups)  # noqa: E731
    check_operator(make, scripts=lambda seed: far, seeds=2)
    found = [each for each in outputs(make(), far) if isinstance(each, Batch)]
    starts = {moment.day for each in found for moment in each.rows.column("window_start").to_pylist()}
    assert starts == {1}


def _slowed(element: Element, factor: int) -> Element:
    if isinstance(element, Punctuation):
        return element if element.until == END_OF_TIME else Punctuation(element.until * factor)
    assert isinstance(element, Batch)
    return Batch(element.rows.set_column(2, TIME, pa.array(element.times * factor)))


def test_all_windows_of_a_wide_range_close_at_the_end() -> None:
    operator = aggregate(10**12, 10**11)
    list(operator.on_batch(0, Batch(pa.record_batch({"k": ["a"], "n": [1], TIME: [-5]}))))
    assert len(rows_of(outputs(operator, Script(((0, Punctuation(END_OF_TIME)),))))) == 10
