"""How stale keys are: areas under their staleness, for rows and for windows."""

from __future__ import annotations

import numpy as np
import pytest

from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.staleness import Measure, RowStaleness, WindowStaleness

KEY = np.array([0])


def cells_of(kind: type[RowStaleness] | type[WindowStaleness]) -> tuple[KeyCells, RowStaleness | WindowStaleness]:
    cells = KeyCells()
    staleness = kind(cells)
    cells.grow(1)
    cells["first"][0] = 0
    return cells, staleness


def test_an_area_keeps_what_has_ended_and_the_mean_adds_what_goes_on() -> None:
    cells, _ = cells_of(RowStaleness)
    measure = Measure(cells, "queue")
    measure.begin(KEY, np.array([10]))
    measure.begin(KEY, np.array([12]))
    assert measure.since[0] == 10, "a key that is stale stays so since the first moment"
    assert measure.present(16).tolist() == [6.0]
    measure.move(KEY, np.array([14]), 20)
    assert cells["queue_area"][0] == (10**2 - 6**2) / 2
    assert measure.mean(20, measure.present(20)).tolist() == [10**2 / 2 / 20]


def test_what_counts_from_a_later_moment_on_is_taken_off() -> None:
    cells, _ = cells_of(RowStaleness)
    measure = Measure(cells, "queue")
    measure.begin(KEY, np.array([10]))
    measure.not_before(KEY, np.array([10]), np.array([13]))
    measure.move(KEY, np.array([NONE]), 20)
    assert cells["queue_area"][0] == (10**2 - 3**2) / 2
    assert measure.present(30).tolist() == [0.0]


@pytest.mark.parametrize("one", [False, True], ids=["columns", "one row"])
def test_a_row_is_stale_for_the_queue_until_it_leaves_and_for_the_application_until_it_is_delivered(one: bool) -> None:
    _, staleness = cells_of(RowStaleness)
    assert isinstance(staleness, RowStaleness)
    if one:
        staleness.arrive_one(0, 10)
        staleness.wait_one(0, 10)
        staleness.leave_one(0, NONE, 14)
    else:
        staleness.arrive(KEY, np.array([10]))
        staleness.wait(KEY, 1, np.array([10]))
        staleness.leave(KEY, 1, None, 14)
    assert [each.tolist() for each in staleness.present(16, late=False)] == [[0.0], [6.0]]
    assert [each.tolist() for each in staleness.present(16, late=True)] == [[0.0], [0.0]]
    staleness.rest(18)
    assert [each.tolist() for each in staleness.means(20, late=False)] == [[4**2 / 2 / 20], [8**2 / 2 / 20]]


def test_a_window_that_is_shown_late_is_stale_until_it_is_shown() -> None:
    _, staleness = cells_of(WindowStaleness)
    assert isinstance(staleness, WindowStaleness)
    staleness.late = True
    staleness.queue.begin(KEY, np.array([10]))
    staleness.application.begin(KEY, np.array([10]))
    staleness.commit(KEY, 12)
    staleness.deliver(KEY, np.array([NONE]), 13)
    assert [each.tolist() for each in staleness.present(14, late=True)] == [[0.0], [0.0]]
    assert staleness.means(15, late=True)[1].tolist() == [5**2 / 2 / 15], "it counts until that is told"
    staleness.show(18)
    assert staleness.means(20, late=True)[1].tolist() == [8**2 / 2 / 20]
    assert staleness.means(20, late=False)[1].tolist() == [3**2 / 2 / 20]
