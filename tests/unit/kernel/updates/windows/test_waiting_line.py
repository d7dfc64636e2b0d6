"""The line of keys that wait for their windows."""

from __future__ import annotations

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.queue_settings import LINECUTTING_AS_PRINTED
from millrace.kernel.updates.windows.waiting_line import WaitingLine
from millrace.kernel.updates.windows.window_cells import OPEN, SHUT, WindowCells


def line_of(keys: int) -> tuple[WindowCells, WaitingLine]:
    """A line of no key, with cells for some."""
    cells = WindowCells()
    cells.grow(keys)
    cells.first[:keys] = 0
    return cells, WaitingLine(cells, slide=10)


def wait(line: WaitingLine, *keys: int, since: int = 5) -> None:
    line.wait(np.array(keys), np.full(len(keys), since))


def taken(line: WaitingLine, count: int) -> list[int]:
    keys: Integers = line.take(count)
    return keys.tolist()


def test_keys_leave_in_the_order_in_which_they_came() -> None:
    cells, line = line_of(4)
    wait(line, 2, 0)
    wait(line, 3)
    assert line.first() == 2 and len(line) == 3
    assert taken(line, 2) == [2, 0]
    assert taken(line, 5) == [3]
    assert line.first() is None and not len(line)
    assert cells.queue_since[[0, 2, 3]].tolist() == [5, 5, 5]
    assert line.committed == 3


def test_a_key_with_an_open_commitment_keeps_its_place_out_of_line() -> None:
    cells, line = line_of(3)
    cells.opened[1] = OPEN
    wait(line, 1, 0)
    assert len(line) == 1
    cells.opened[1] = SHUT
    line.stand(np.array([1]))
    assert taken(line, 2) == [1, 0]


def test_a_renewed_key_goes_to_the_end_and_is_skipped_where_it_stood() -> None:
    _, line = line_of(3)
    wait(line, 0, 1, 2)
    line.renew(np.array([0]))
    assert len(line) == 3
    assert taken(line, 3) == [1, 2, 0]


def test_as_printed_a_key_that_is_slower_than_a_round_cuts_the_line() -> None:
    cells, line = line_of(4)
    line.policy, line.cost = LINECUTTING_AS_PRINTED, 1.0
    line.committed, line.released = 1, 10
    wait(line, 0, 1, since=0)
    cells.updates[:4] = 100, 100, 100, 1
    cells.first[3] = 950
    # A round takes 20, then 30: key 2 is updated every 10 or so, key 3 once in 50.
    line.wait(np.array([2]), np.array([1000]))
    line.wait(np.array([3]), np.array([1000]))
    assert taken(line, 4) == [3, 0, 1, 2]


def test_a_saved_line_goes_on_with_the_keys_that_wait() -> None:
    cells, line = line_of(4)
    wait(line, 3, 1, 2)
    assert taken(line, 1) == [3]
    cells.place[3] = NONE
    other = WaitingLine(cells, slide=10)
    other.restore(line.note())
    wait(other, 0)
    assert taken(other, 4) == [1, 2, 0]
