from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.aggregates.marked_aggregate import MarkedAggregate
from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.elements import ARRIVED, END_OF_TIME, MARK, TIME, Batch, Element, GroupPunctuation, Punctuation
from millrace.kernel.operator import Operator
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.windows.window_queue import WindowQueue
from tests.reference_windows_updates import Row, windows_of
from tests.unit.kernel.window_queues import batch_of

TOTAL = [FunctionCall("rows", "count"), FunctionCall("total", "sum", ("v",))]


def marked(rows: list[tuple[int, str, int, int]]) -> Batch:
    """Rows of mark, key, time and value."""
    marks, keys, times, values = zip(*rows, strict=True)
    columns = {"k": keys, "v": values, TIME: times, MARK: marks}
    return Batch(pa.record_batch({name: pa.array(column) for name, column in columns.items()}))


def closer(*pairs: tuple[int, int]) -> GroupPunctuation:
    marks, until = zip(*pairs, strict=True)
    return GroupPunctuation(pa.record_batch({MARK: pa.array(marks)}), np.array(until))


def aggregate(length: int = 10, slide: int = 5, span: int = 10, *, buffered: bool = False) -> MarkedAggregate:
    return MarkedAggregate(Partials(WindowGeometry(length, slide), ["k"], TOTAL), span, buffered=buffered)


def reported(elements: Iterator[Element]) -> list[tuple[object, ...]]:
    found = []
    for element in elements:
        if isinstance(element, Batch):
            names = ("k", "rows", "total", TIME, MARK)
            found += list(zip(*(element.rows.column(name).to_pylist() for name in names), strict=True))
    return sorted(found, key=str)


@pytest.mark.parametrize("buffered", [False, True])
def test_a_closer_reports_its_window_and_is_passed_on_behind_it(buffered: bool) -> None:
    operator = aggregate(buffered=buffered)
    assert not list(operator.on_batch(0, marked([(0, "a", 1, 10), (1, "b", 7, 20), (0, "a", 6, 30)])))
    assert operator.held == 3
    results, passed = operator.on_groups(closer((0, 10)))
    assert reported(iter([results])) == [("a", 2, 40, 9, 0)]
    assert isinstance(passed, GroupPunctuation) and passed.until.tolist() == [10]
    # The row of the other mark is kept, and joined by a later one.
    list(operator.on_batch(0, marked([(1, "b", 12, 5)])))
    assert reported(operator.on_groups(closer((1, 15)))) == [("b", 2, 25, 14, 1)]
    assert operator.held == 0


def test_results_have_the_columns_of_a_window_aggregate_and_the_mark() -> None:
    operator, ordinary = aggregate(), WindowAggregate(Partials(WindowGeometry(10, 5), ["k"], TOTAL))
    batch = marked([(3, "a", 1, 10)])
    batch = Batch(batch.rows.append_column(ARRIVED, pa.array([0])))
    list(operator.on_batch(0, batch))
    list(ordinary.on_batch(0, Batch(batch.rows.drop_columns([MARK]))))
    (ours, _), (theirs, _) = operator.on_groups(closer((3, 5))), ordinary.on_punctuation(Punctuation(5))
    assert isinstance(ours, Batch) and isinstance(theirs, Batch)
    assert ours.rows.schema.names == [*theirs.rows.schema.names[:-1], MARK, ARRIVED]
    assert ours.rows.drop_columns([MARK]).to_pylist() == theirs.rows.to_pylist()


def test_a_closer_without_rows_reports_nothing() -> None:
    (passed,) = aggregate().on_groups(closer((0, 10)))
    assert isinstance(passed, GroupPunctuation)


def test_bounds_close_nothing() -> None:
    operator = aggregate()
    list(operator.on_batch(0, marked([(0, "a", 1, 10)])))
    assert list(operator.on_punctuation(Punctuation(END_OF_TIME))) == [Punctuation(END_OF_TIME)]
    assert operator.held == 1


def test_all_windows_in_the_span_are_reported_and_none_that_begins_before_it() -> None:
    operator = aggregate(4, 2, 8)
    list(operator.on_batch(0, marked([(0, "a", time, 1) for time in range(2, 10)])))
    # [2, 6), [4, 8) and [6, 10) lie in [2, 10); [0, 4) would be a part of a window.
    assert [row[3] for row in reported(operator.on_groups(closer((0, 10))))] == [5, 7, 9]


@pytest.mark.parametrize("buffered", [False, True])
def test_saves_what_is_held_and_goes_on_from_it(buffered: bool) -> None:
    operator = aggregate(buffered=buffered)
    list(operator.on_batch(0, marked([(0, "a", 1, 10), (1, "a", 1, 10), (1, "b", 7, 20)])))
    again = aggregate(buffered=buffered)
    again.restore(operator.changes())
    list(again.on_batch(0, marked([(1, "a", 2, 1)])))
    assert reported(again.on_groups(closer((1, 10), (0, 10)))) == [
        ("a", 1, 10, 9, 0),
        ("a", 2, 11, 9, 1),
        ("b", 1, 20, 9, 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "lazy"])
@pytest.mark.parametrize(("lower", "upper"), [((1, 1), (5, 2)), ((4, 2), (6, 2)), ((3, 3), (6, 6)), ((6, 3), (9, 3))])
def test_two_aggregates_in_a_chain_report_whole_windows(
    mode: str, lower: tuple[int, int], upper: tuple[int, int]
) -> None:
    (length, slide), (outer, step) = lower, upper
    span = outer + length - slide
    queue = WindowQueue(
        ["k"],
        span,
        step,
        QueueSettings(),
        origin=slide - length,
        update_window=mode,  # type: ignore[arg-type]
    )
    chain = [
        MarkedAggregate(Partials(WindowGeometry(length, slide), ["k"], TOTAL), span),
        MarkedAggregate(Partials(WindowGeometry(outer, step), ["k"], [FunctionCall("most", "max", ("total",))]), outer),
    ]
    draw = np.random.default_rng(7)
    rows: list[Row] = [(str(draw.choice(list("abc"))), number // 3, int(draw.integers(1, 99))) for number in range(300)]
    found: dict[tuple[str, int], int] = {}
    for number, row in enumerate(rows):
        list(queue.on_batch(0, batch_of([row])))
        list(queue.on_punctuation(Punctuation(END_OF_TIME if number == len(rows) - 1 else row[1])))
        while queue.unfinished and (number % 4 == 0 or queue.ended):
            for result in through(chain, queue.on_more(3)):
                starts = result.rows.column("window_start").cast(pa.int64()).to_pylist()
                pairs = zip(result.rows.column("k").to_pylist(), starts, strict=True)
                found.update(zip(pairs, result.rows.column("most").to_pylist(), strict=True))
            queue.on_rest()
    expected = chained(rows, lower, upper)
    assert found.items() <= expected.items()
    assert {max(start for key, start in found if key == name) for name in "abc"} <= {start for _, start in expected}
    for name in "abc":
        newest = max(start for key, start in expected if key == name)
        assert found[name, newest] == expected[name, newest]


def through(chain: list[MarkedAggregate], elements: Iterator[Element]) -> Iterator[Batch]:
    """What comes out of a chain of operators."""
    for operator in chain:
        elements = _through(operator, elements)
    return (element for element in elements if isinstance(element, Batch))


def _through(operator: Operator, elements: Iterator[Element]) -> Iterator[Element]:
    for element in elements:
        if isinstance(element, Batch):
            yield from operator.on_batch(0, element)
        elif isinstance(element, GroupPunctuation):
            yield from operator.on_groups(element)


def chained(rows: list[Row], lower: tuple[int, int], upper: tuple[int, int]) -> dict[tuple[str, int], int]:
    """The greatest total of the inner windows that end in each outer one."""
    totals: dict[tuple[str, int], int] = defaultdict(int)
    for key, time, value in rows:
        for start in windows_of(time, *lower):
            totals[key, start] += value
    most: dict[tuple[str, int], int] = {}
    for (key, start), total in totals.items():
        for outer in windows_of(start + lower[0] - 1, *upper):
            most[key, outer] = max(total, most.get((key, outer), total))
    return most
