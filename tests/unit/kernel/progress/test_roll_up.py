from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, GroupPunctuation, Punctuation
from millrace.kernel.progress.roll_up import RollUp
from tests.unit.kernel.check_operator import check_operator
from tests.unit.kernel.saved_segments import SavedSegments


def rows(*members: tuple[str, int]) -> Batch:
    keys, times = zip(*members, strict=True)
    return Batch(pa.record_batch({"device": pa.array(keys, pa.string()), TIME: list(times)}))


def promises(**until: int) -> GroupPunctuation:
    keys = pa.record_batch({"device": list(until)})
    return GroupPunctuation(keys, np.array(list(until.values()), np.int64))


def times(elements: list[Element]) -> list[int]:
    return [time for each in elements if isinstance(each, Batch) for time in each.times.tolist()]


def test_it_keeps_the_contract_of_an_operator() -> None:
    check_operator(RollUp)


def test_the_least_promise_of_all_groups_is_passed_on() -> None:
    roll_up = RollUp()
    assert list(roll_up.on_groups(promises(a=10, b=NO_BOUND))) == []
    assert list(roll_up.on_groups(promises(b=7))) == [Punctuation(7)]
    assert list(roll_up.on_groups(promises(a=20))) == []
    assert list(roll_up.on_groups(promises(a=30, b=25))) == [Punctuation(25)]


def test_a_promise_never_goes_back() -> None:
    roll_up = RollUp()
    assert list(roll_up.on_groups(promises(a=10))) == [Punctuation(10)]
    assert list(roll_up.on_groups(promises(a=5))) == []
    assert list(roll_up.on_groups(promises(a=11))) == [Punctuation(11)]


def test_a_new_group_holds_everything_back_until_it_promises() -> None:
    roll_up = RollUp()
    list(roll_up.on_groups(promises(a=10)))
    assert times(list(roll_up.on_batch(0, rows(("b", 9), ("b", 10), ("a", 12))))) == [10, 12]
    assert roll_up.turned_away == 1
    assert list(roll_up.on_groups(promises(b=NO_BOUND))) == []
    assert list(roll_up.on_groups(promises(a=50, b=NO_BOUND))) == []
    assert list(roll_up.on_groups(promises(b=40))) == [Punctuation(40)]


def test_the_bound_of_the_stream_holds_for_every_group() -> None:
    roll_up = RollUp()
    list(roll_up.on_groups(promises(a=NO_BOUND, b=NO_BOUND)))
    assert list(roll_up.on_punctuation(Punctuation(30))) == [Punctuation(30)]
    assert list(roll_up.on_groups(promises(a=40))) == []
    assert list(roll_up.on_punctuation(Punctuation(END_OF_TIME))) == [Punctuation(END_OF_TIME)]


@pytest.mark.parametrize("restarts", [1, 10, 60])
def test_a_restart_forgets_no_group_and_a_save_writes_what_changed(restarts: int) -> None:
    roll_up, segments, written = RollUp(), SavedSegments(), 0
    for number in range(60):
        list(roll_up.on_groups(promises(**{f"d{number}": 1_000 + number, "d0": 1_000 + number})))
        changes = roll_up.changes()
        written += sum(table.num_rows for table in changes.added.values())
        saved = segments.after(changes)
        if number % (60 // restarts) == 0:
            roll_up = RollUp()
            roll_up.restore(saved)
    assert written < 60 * 15
    assert list(roll_up.on_groups(promises(**{f"d{number}": 1_100 for number in range(1, 60)}))) == [Punctuation(1_059)]
