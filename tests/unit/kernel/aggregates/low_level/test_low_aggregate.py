"""The low level with a table of fixed size: the same answers, the promised delay, and the order of the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millrace.errors import RequestError
from millrace.kernel.aggregates.low_level.flush_policy import FlushPolicy
from millrace.kernel.aggregates.low_level.low_aggregate import LowAggregate
from millrace.kernel.aggregates.panes.window_geometry import CalendarWindows, WindowGeometry
from millrace.kernel.aggregates.partials import PANE, FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.state import Changes
from tests.unit.kernel.check_operator import (
    Script,
    check_bounds,
    outputs,
    random_script,
    rebatched,
    restarted,
    rows_of,
)

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("least", "min", ("n",)),
    FunctionCall("greatest", "max", ("k",)),
    FunctionCall("mean", "avg", ("n",)),
]
TWO_SLOTS = FlushPolicy(second_slot=True)
IN_ORDER, SLOW, LAZY = FlushPolicy(), FlushPolicy("slow_flush", 3, 2), FlushPolicy("lazy_flush", delay=1)
POLICIES = [IN_ORDER, TWO_SLOTS, SLOW, LAZY, FlushPolicy("slow_flush", 1, 0), FlushPolicy("lazy_flush", delay=0)]


def shape(length: int = 10, slide: int = 10, keys: Sequence[str] = ("k",)) -> Partials:
    return Partials(WindowGeometry(length, slide), keys, AGGREGATIONS)


def rolled_up(between: Sequence[Element], partials: Partials) -> list[str]:
    return rows_of(outputs(WindowAggregate(partials), Script(tuple((0, element) for element in between))))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@example(seed=386, size=1, policy=IN_ORDER, window=(10, 10), keys=("k",), gathers=16)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 8),
    policy=st.sampled_from(POLICIES),
    window=st.sampled_from([(10, 10), (30, 10), (10, 3), (10, 25)]),
    keys=st.sampled_from([("k",), ("k", "n"), ()]),
    gathers=st.sampled_from([1, 16, 256]),
)
def test_the_roll_up_gives_what_one_level_does(
    seed: int,
    size: int,
    policy: FlushPolicy,
    window: tuple[int, int],
    keys: tuple[str, ...],
    gathers: int,
) -> None:
    script, partials = random_script(seed, ports=1), shape(*window, keys)
    expected = rows_of(outputs(WindowAggregate(partials), script))

    def make() -> LowAggregate:
        return LowAggregate(partials, size, policy, gathers=gathers)

    for between in (outputs(make(), script), outputs(make(), rebatched(script, seed)), restarted(make, script, seed)):
        check_bounds(between)
        assert rolled_up(between, partials) == expected


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_months_are_rolled_up_too(policy: FlushPolicy) -> None:
    partials = Partials(CalendarWindows(1), ["k"], AGGREGATIONS)
    days = np.arange(200) * 86_400_000_000
    script = Script(((0, rows(days.tolist(), [f"k{day % 7}" for day in range(200)])), (0, Punctuation(END_OF_TIME))))
    between = outputs(LowAggregate(partials, 3, policy), script)
    assert rolled_up(between, partials) == rows_of(outputs(WindowAggregate(partials), script))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 8), policy=st.sampled_from(POLICIES))
def test_an_entry_leaves_within_the_promised_delay_and_the_table_keeps_its_size(
    seed: int, size: int, policy: FlushPolicy
) -> None:
    operator, ended = LowAggregate(shape(), size, policy, gathers=4), NO_BOUND
    for step in random_script(seed, ports=1).steps:
        for left in outputs(operator, Script((step,))):
            if isinstance(left, Batch):
                oldest = min(left.rows.column(PANE).to_pylist())
                assert (oldest + 1 + policy.delay) * 10 > ended, "an entry left later than was promised"
        ended = step[1].until if isinstance(step[1], Punctuation) else ended
        assert operator.held < size + 4
        assert operator.wanted() is None or operator.wanted() > ended  # type: ignore[operator]


@settings(max_examples=20, deadline=None)
@given(
    gaps=st.lists(st.integers(0, 4), min_size=1, max_size=80),
    size=st.integers(1, 8),
    step=st.integers(1, 9),
    seed=st.integers(0, 100),
    policy=st.sampled_from([IN_ORDER, TWO_SLOTS]),
)
def test_in_order_input_leaves_in_order_of_windows(
    gaps: list[int], size: int, step: int, seed: int, policy: FlushPolicy
) -> None:
    times = np.cumsum(gaps).tolist()
    keys = [f"k{key}" for key in np.random.default_rng(seed).integers(0, 9, len(times))]
    batches = [rows(times[at : at + step], keys[at : at + step]) for at in range(0, len(times), step)]
    script = Script((*((0, batch) for batch in batches), (0, Punctuation(END_OF_TIME))))
    found = [each for each in outputs(LowAggregate(shape(), size, policy), script) if isinstance(each, Batch)]
    panes = [pane for each in found for pane in each.rows.column(PANE).to_pylist()]
    assert panes == sorted(panes)


@settings(max_examples=25, deadline=None)
@given(
    gaps=st.lists(st.integers(0, 3), min_size=1, max_size=80),
    size=st.integers(1, 8),
    seed=st.integers(0, 100),
    policy=st.sampled_from([IN_ORDER, TWO_SLOTS]),
)
def test_row_by_row_it_does_what_the_paper_says(gaps: list[int], size: int, seed: int, policy: FlushPolicy) -> None:
    times = np.cumsum(gaps).tolist()
    keys = [f"k{key}" for key in np.random.default_rng(seed).integers(0, 9, len(times))]
    operator = LowAggregate(shape(), size, policy, gathers=1)
    paper = Paper(size, dict(zip(keys, slots_of(keys, size), strict=True)), policy.second_slot)
    for time, key in zip(times, keys, strict=True):
        found = [each for each in operator.on_batch(0, rows([time], [key])) if isinstance(each, Batch)]
        put_out = [
            (row[PANE], row["k"], row["__p0_0"]) for each in found for row in each.rows.to_pylist()
        ]  # fmt: skip
        assert put_out == paper.process(time // 10, key)


class Paper:
    """004 Fig. 7 as corrected, tuple by tuple; windows without tuples begin and end as well."""

    def __init__(self, size: int, slot_of: dict[str, int], second_slot: bool) -> None:
        self.slot_of = slot_of
        self.second_slot = second_slot
        self.table: list[list[object] | None] = [None] * size
        self.new = NO_BOUND
        self.position = size

    def process(self, window: int, key: str) -> list[tuple[object, ...]]:
        out: list[tuple[object, ...]] = []
        if window > self.new:
            self.flush(window - 1, out)
            self.new, self.position = window, 0
        if self.position < len(self.table):
            entry = self.table[self.position]
            if entry is not None and entry[0] < self.new:  # type: ignore[operator]
                self.output(self.position, out)
            self.position += 1
        slot = self.slot_of[key]
        entry = self.table[slot]
        if self.second_slot and entry is not None and entry[0] == self.new and entry[:2] != [window, key]:
            following = (slot + 1) % len(self.table)
            other = self.table[following]
            if other is None or other[0] < self.new or other[:2] == [window, key]:  # type: ignore[operator]
                slot, entry = following, other
        if entry is not None and entry[:2] == [window, key]:
            entry[2] += 1  # type: ignore[operator]
            return out
        if entry is not None:
            if entry[0] == self.new:
                self.flush(self.new, out)
            self.output(slot, out)
        self.table[slot] = [window, key, 1]
        return out

    def flush(self, below: int, out: list[tuple[object, ...]]) -> None:
        for slot, entry in enumerate(self.table):
            if entry is not None and entry[0] < below:  # type: ignore[operator]
                self.output(slot, out)

    def output(self, slot: int, out: list[tuple[object, ...]]) -> None:
        entry = self.table[slot]
        assert entry is not None
        out.append(tuple(entry))
        self.table[slot] = None


@pytest.mark.slow
def test_a_second_slot_saves_flushes() -> None:
    """A step that flushes more than the slot that is looked at had to make room for an entry of the new window."""
    bursts = {}
    for policy in (IN_ORDER, TWO_SLOTS):
        operator = LowAggregate(shape(), 64, policy, gathers=1)
        found = []
        for time in range(0, 100, 10):
            for key in np.random.default_rng(time).permutation(24):
                before = operator.flushed
                list(operator.on_batch(0, rows([time], [f"k{key}"])))
                found.append(operator.flushed - before)
        bursts[policy] = sum(count for count in found if count > 1)
    assert bursts[TWO_SLOTS] < 0.6 * bursts[IN_ORDER], bursts


def slots_of(keys: list[str], size: int) -> list[int]:
    from millrace.kernel.columns.hashing import hashes

    return [int(each) % size for each in hashes([pa.array(keys)])]


def rows(times: list[int], keys: Sequence[str | None]) -> Batch:
    return Batch(pa.record_batch({"k": pa.array(keys, pa.string()), "n": [1] * len(times), TIME: times}))


def entries(elements: Sequence[Element]) -> int:
    return sum(len(each) for each in elements if isinstance(each, Batch))


def test_slow_flush_lets_one_old_entry_out_for_every_so_many_rows() -> None:
    operator = LowAggregate(shape(keys=["n"]), 4096, FlushPolicy("slow_flush", 3, 9), gathers=1)
    list(operator.on_batch(0, numbered(range(21), 5)))
    list(operator.on_punctuation(Punctuation(10)))
    assert entries(list(operator.on_batch(0, numbered([100] * 2, 15)))) == 0
    assert entries(list(operator.on_batch(0, numbered([100], 15)))) == 1
    assert entries(list(operator.on_batch(0, numbered([100] * 13, 15)))) == 4
    assert (operator.flushed, operator.evicted) == (5, 0)


def test_lazy_flush_waits_for_collisions_and_the_delay() -> None:
    operator = LowAggregate(shape(keys=["n"]), 4096, FlushPolicy("lazy_flush", delay=2), gathers=1)
    list(operator.on_batch(0, numbered(range(20), 5)))
    assert list(operator.on_punctuation(Punctuation(10))) == [Punctuation(0)]
    assert entries(list(operator.on_batch(0, numbered([3, 4], 15)))) == 2
    assert operator.wanted() == operator.required(10) == 30
    assert entries(list(operator.on_punctuation(Punctuation(29)))) == 0
    flushed = list(operator.on_punctuation(Punctuation(30)))
    assert entries(flushed) == 18
    assert flushed[-1] == Punctuation(10)
    assert (operator.flushed, operator.evicted, operator.held) == (18, 2, 2)


def test_a_bound_is_passed_on_as_soon_as_the_last_old_entry_has_left() -> None:
    operator = LowAggregate(shape(keys=["n"]), 4096, FlushPolicy("slow_flush", 1, 5), gathers=1)
    list(operator.on_batch(0, numbered([1, 2], 5)))
    assert list(operator.on_punctuation(Punctuation(12))) == [Punctuation(0)]
    assert list(operator.on_batch(0, numbered([7], 15)))[1:] == []
    assert list(operator.on_batch(0, numbered([7], 15)))[1:] == [Punctuation(10)]


def test_few_rows_are_gathered_and_hold_the_bound_back() -> None:
    operator = LowAggregate(shape(keys=["n"]), 4096, LAZY)
    assert list(operator.on_batch(0, numbered([1], 25))) == []
    assert list(operator.on_punctuation(Punctuation(12))) == [Punctuation(12)]
    assert list(operator.on_batch(0, numbered([2], 15))) == []
    assert operator.held == 2
    found = list(operator.on_punctuation(Punctuation(30)))
    assert (entries(found), operator.held) == (1, 1)
    assert found[-1] == Punctuation(20)


def test_a_save_is_written_only_when_something_changed() -> None:
    operator = LowAggregate(shape(keys=["n"]), 64, LAZY, gathers=1)
    list(operator.on_batch(0, numbered(range(40), 5)))
    first = operator.changes()
    assert sum(table.num_rows for table in first.added.values()) == operator.held
    again = operator.changes()
    assert not again.added and not again.removed
    restored = LowAggregate(shape(keys=["n"]), 64, LAZY, gathers=1)
    restored.restore(Changes(first.added, (), first.note))
    assert (restored.held, restored.evicted) == (operator.held, operator.evicted)


def numbered(keys: Sequence[int], time: int) -> Batch:
    return Batch(pa.record_batch({"k": ["a"] * len(keys), "n": list(keys), TIME: [time] * len(keys)}))


def test_a_policy_is_read_from_its_option() -> None:
    assert FlushPolicy.parse("in_order") == IN_ORDER
    assert FlushPolicy.parse(" Slow_Flush( 160,2 )") == FlushPolicy("slow_flush", 160, 2)
    assert [str(FlushPolicy.parse(str(each))) for each in POLICIES] == [str(each) for each in POLICIES]


@pytest.mark.parametrize("text", ["", "slow_flush", "slow_flush(0, 1)", "lazy_flush(1, 2)", "eager"])
def test_another_policy_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        FlushPolicy.parse(text)
    assert f'"{text}"' in refused.value.fact and "lazy_flush(m)" in refused.value.hint
