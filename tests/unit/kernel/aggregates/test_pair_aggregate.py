from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.aggregates.low_level.pre_aggregate import PreAggregate
from millrace.kernel.aggregates.pair_aggregate import PairAggregate
from millrace.kernel.aggregates.panes import pair_panes
from millrace.kernel.aggregates.panes.window_geometry import Instants
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, JointPunctuation, Punctuation, Times
from tests.unit.kernel.check_operator import Script, check_bounds, check_operator, outputs, rows_of

TIMESTAMP = pa.timestamp("us", tz="UTC")
Pair = tuple[int, int]


def partials() -> Partials:
    return Partials(Instants(), ["k", "a", "b"], [FunctionCall("rows", "count"), FunctionCall("total", "sum", ("n",))])


def make() -> PairAggregate:
    return PairAggregate(partials(), "a", "b")


def batch(firsts: Times | Sequence[int], seconds: Times | Sequence[int], keys: Sequence[str | None] = ()) -> Batch:
    columns = [
        pa.array(keys or ["x"] * len(firsts), pa.string()),
        pa.array(np.array(firsts, np.int64)).cast(TIMESTAMP),
        pa.array(np.array(seconds, np.int64)).cast(TIMESTAMP),
        pa.array(np.arange(len(firsts)) + 1),
        pa.array(np.maximum(firsts, seconds)),
    ]
    return Batch(pa.RecordBatch.from_arrays(columns, names=["k", "a", "b", "n", TIME]))


def random_script(seed: int, *, joint: bool = True) -> Script:
    """Joined rows of two streams whose bounds take turns to be ahead, with what a join promises of them."""
    random = np.random.default_rng(seed)
    bounds = random.integers(-40, 40, 2)
    steps: list[tuple[int, Element]] = []
    for _ in range(20):
        count = int(random.integers(1, 20))
        # One of the two is new, hence not below its bound; the other may be.
        firsts, seconds = (bound + random.integers(-15, 25, count) for bound in bounds)
        new = random.random(count) < 0.5
        firsts = np.where(new, np.maximum(firsts, bounds[0]), firsts)
        seconds = np.where(new, seconds, np.maximum(seconds, bounds[1]))
        later = np.maximum(firsts, seconds) >= bounds.min()
        if later.any():
            names = [[None, "x", "y"][each] for each in random.integers(0, 3, int(later.sum()))]
            steps.append((0, batch(firsts[later], seconds[later], names)))
        if random.random() < 0.7:
            bounds[int(random.integers(0, 2))] += int(random.integers(1, 30))
            steps += [(0, JointPunctuation((int(bounds[0]), int(bounds[1]))))] if joint else []
            if random.random() < 0.7:
                steps.append((0, Punctuation(int(bounds.min()))))
    return Script((*steps, (0, Punctuation(END_OF_TIME))))


def without_joint(script: Script) -> Script:
    return Script(tuple(step for step in script.steps if not isinstance(step[1], JointPunctuation)))


def pairs_of(elements: Sequence[Element]) -> list[Pair]:
    """The pairs of times of all results, in the order in which they left."""
    found = list[Pair]()
    for each in elements:
        if isinstance(each, Batch):
            firsts, seconds = (each.rows.column(name).cast(pa.int64()).to_pylist() for name in ("a", "b"))
            found += zip(firsts, seconds, strict=True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("spare", [0, 2**8])
def test_a_pair_aggregate_keeps_the_contract(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_panes, "_SPARE", spare)
    check_operator(make, scripts=random_script, seeds=4)


@pytest.mark.parametrize("seed", range(6))
def test_promises_about_pairs_change_when_results_leave_and_nothing_else(seed: int) -> None:
    script = random_script(seed)
    found = outputs(make(), script)
    assert rows_of(found) == rows_of(outputs(make(), without_joint(script)))
    assert max(Counter(row for row in rows_of(found)).values()) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_pair_leaves_at_the_first_promise_that_completes_it(seed: int) -> None:
    operator, waiting, joint, linear = make(), set[Pair](), (NO_BOUND, NO_BOUND), NO_BOUND
    for step in random_script(seed).steps:
        left = set(pairs_of(outputs(operator, Script((step,)))))
        element = step[1]
        if isinstance(element, Batch):
            waiting |= set(pairs_of([element]))
        elif isinstance(element, JointPunctuation):
            joint = element.until
        elif isinstance(element, Punctuation):
            linear = element.until
        complete = {pair for pair in waiting if max(pair) < linear or (pair[0] < joint[0] and pair[1] < joint[1])}
        assert left == complete
        waiting -= complete
        assert operator.wanted() == min((max(pair) + 1 for pair in waiting), default=None)
    assert operator.held == 0


@pytest.mark.parametrize("seed", range(4))
def test_partials_of_a_lower_level_give_what_rows_do(seed: int) -> None:
    script = random_script(seed, joint=False)
    between = outputs(PreAggregate(partials()), script)
    check_bounds(between)
    above = Script(tuple((0, element) for element in between))
    assert rows_of(outputs(make(), above)) == rows_of(outputs(make(), script))


def test_a_pair_waits_until_both_of_its_times_are_passed() -> None:
    operator = make()
    list(operator.on_batch(0, batch([1, 8], [3, 2])))
    assert list(operator.on_joint(JointPunctuation((9, 2)))) == [JointPunctuation((9, 2))]
    left, promise = operator.on_joint(JointPunctuation((9, 3)))
    assert pairs_of([left]) == [(8, 2)] and promise == JointPunctuation((9, 3))
    assert isinstance(left, Batch) and left.times.tolist() == [8]
    assert operator.wanted() == 4
    left, bound = operator.on_punctuation(Punctuation(4))
    assert pairs_of([left]) == [(1, 3)] and bound == Punctuation(4)
    assert (operator.wanted(), operator.held) == (None, 0)


def test_a_promise_that_says_less_of_one_time_is_left_aside() -> None:
    operator = make()
    list(operator.on_batch(0, batch([1, 8], [8, 1])))
    assert len(list(operator.on_joint(JointPunctuation((9, 5))))) == 2
    assert len(list(operator.on_joint(JointPunctuation((5, 9))))) == 1
    assert pairs_of(list(operator.on_punctuation(Punctuation(9)))) == [(1, 8)]


def test_a_pair_without_one_of_its_times_waits_for_the_bound() -> None:
    operator = make()
    alone = batch([5], [5]).rows.set_column(2, "b", pa.nulls(1, TIMESTAMP))
    list(operator.on_batch(0, Batch(alone)))
    assert len(list(operator.on_joint(JointPunctuation((END_OF_TIME, END_OF_TIME))))) == 1
    left, _ = operator.on_punctuation(Punctuation(6))
    assert isinstance(left, Batch) and left.rows.column("rows").to_pylist() == [1]


def test_pairs_that_have_left_take_no_room_while_the_bound_stands_still() -> None:
    operator = make()
    list(operator.on_batch(0, batch([0, *range(9_000, 12_000)], [100, *([0] * 3_000)])))
    list(operator.on_joint(JointPunctuation((100, 1))))
    assert operator.held == 3_001
    list(operator.on_joint(JointPunctuation((12_000, 1))))
    for step in range(120, 150):
        list(operator.on_batch(0, batch(np.arange(100) + step * 100, np.zeros(100, np.int64))))
        list(operator.on_joint(JointPunctuation((step * 100 + 100, 1))))
        assert operator.held == 1
        assert operator.state_bytes < 50_000
    assert operator.wanted() == 101


def test_a_save_writes_what_changed_and_not_what_is_held() -> None:
    operator, written = make(), 0
    for step in range(64):
        list(operator.on_batch(0, batch(np.arange(100) + step * 100, np.full(100, 10**6))))
        list(operator.on_joint(JointPunctuation((step * 100, 10**6))))
        written += sum(table.num_rows for table in operator.changes().added.values())
    assert operator.held == 6_400
    assert written < 8 * operator.held
