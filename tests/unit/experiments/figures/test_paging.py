"""The update queue whose locations the figure of 002's pages counts."""

from __future__ import annotations

import pytest

from millrace.experiments.figures.paging import NAIVE, PAGED, SERVED, PagingCase, effective


def test_what_is_allocated_on_demand_is_in_use_and_naive_memory_keeps_a_location_a_key() -> None:
    paged, naive = (PagingCase(memory, 0.6, 30, results=60).outcome() for memory in (PAGED, NAIVE))
    assert effective(paged) == 1.0
    assert naive.used == pytest.approx(paged.used)
    assert paged.allocated < 0.8 * naive.allocated <= 80
    assert 0 < effective(naive) < 0.8


def test_so_many_results_are_served_as_the_case_says() -> None:
    found = PagingCase(PAGED, 0.0, 5 * SERVED, results=40).outcome()
    assert found.results == pytest.approx(40, abs=1)
