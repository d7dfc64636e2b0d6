"""Lines of keys: a look at the front costs what is looked for, however many keys have left the line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import PropertyMock, patch

import numpy as np
import pytest

from millrace.kernel.baselines.linecutting_as_printed import Stack
from millrace.kernel.columns.integers import Integers
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.key_order import Line
from millrace.kernel.updates.policies.linecutting_guard import Guard
from millrace.kernel.updates.queue_settings import Access
from tests.reference_updates import Row
from tests.unit.kernel.update_queues import batch_of, queue_of

SECOND = 1_000_000
TURNS = 50


class Looks:
    """How many entries of lines have been looked at in bulk, and in how many looks."""

    def __init__(self) -> None:
        self.entries = self.looks = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """As long as it holds, all lines count."""
        plain, looks = Line._standing, self

        def standing(line: Line, start: int, stop: int) -> Integers:
            looks.entries += stop - start
            looks.looks += 1
            return plain(line, start, stop)

        with patch.object(Line, "_standing", standing):
            yield


def filled(kind: type[Line], keys: int) -> tuple[KeyCells, Line]:
    cells = KeyCells()
    cells.add("place")
    cells.grow(keys)
    cells["place"][:keys] = np.arange(keys)
    line = kind(cells)
    line.push(np.arange(keys), np.arange(keys))
    return cells, line


@pytest.mark.parametrize("kind", [Line, Stack])
@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_keys_that_have_left_are_passed_once(kind: type[Line], at_once: int) -> None:
    keys = 3000
    (cells, line), looks, found = filled(kind, keys), Looks(), list[int]()
    with looks.counting():
        while len(front := line.peek(at_once)):
            found += front.tolist()
            cells["place"][front] = NONE
    assert found == (list(range(keys)) if kind is Line else list(range(keys))[::-1])
    assert looks.entries <= 4 * keys


@pytest.mark.parametrize("kind", [Line, Stack])
def test_a_gap_is_crossed_in_growing_steps(kind: type[Line]) -> None:
    (cells, line), looks = filled(kind, 4000), Looks()
    cells["place"][1:3999] = NONE
    with looks.counting():
        assert sorted(line.peek(2).tolist()) == [0, 3999]
    assert looks.looks < 15


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("policy", ["access", "linecutting", "linecutting_as_printed"])
def test_a_turn_costs_the_same_however_many_keys_have_left(policy: str, at_once: int) -> None:
    def entries(keys: int) -> int:
        access = (Access(3600 * SECOND),) if policy == "access" else ()
        queue, looks = queue_of("inplace" if access else policy, access=access), Looks()
        queue.learn_cost(1000.0)
        queue.on_time(1)
        list(queue.on_batch(0, batch_of([Row(1, 1, f"k{key}", key) for key in range(keys)])))
        list(queue.on_more(keys // 2))
        # The first turn after that may pass all that has left.
        list(queue.on_more(at_once))
        with looks.counting():
            for turn in range(TURNS):
                queue.on_time(2 + turn)
                list(queue.on_batch(0, batch_of([Row(2 + turn, 2 + turn, f"k{turn}", turn)])))
                assert [len(each) for each in queue.on_more(at_once)] == [at_once]  # type: ignore[arg-type]
                queue.on_rest()
        return looks.entries

    with patch.object(Guard, "strength", PropertyMock(return_value=1.0)):
        assert entries(4000) <= entries(1000) + 100
        assert entries(4000) <= 20 * TURNS * at_once
