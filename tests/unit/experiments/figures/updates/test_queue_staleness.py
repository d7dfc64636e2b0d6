"""The turns of a curve, and the update queue whose locations are counted, on short runs."""

from __future__ import annotations

import pytest

from millrace.experiments.figures.updates.queue_staleness import NAIVE, PAGED, SERVED, page_case, turns


def test_a_curve_turns_where_it_begins_to_fall_and_where_it_rises_again() -> None:
    assert turns([1.0, 2.0, 1.0, 1.5]) == 2
    assert turns([1.0, 1.0, 1.01]) == 0


def test_what_is_allocated_on_demand_is_in_use_and_naive_memory_keeps_a_location_per_key() -> None:
    paged, naive = (page_case(memory, 0.6, 30, results=60).measure() for memory in (PAGED, NAIVE))
    assert paged["in_use"] == 1.0
    assert naive["in_use"] * naive["allocated"] == pytest.approx(paged["allocated"])
    assert paged["allocated"] < 0.8 * naive["allocated"] <= 80
    assert 0 < naive["in_use"] < 0.8


def test_so_many_results_are_served_as_the_case_says() -> None:
    found = page_case(PAGED, 0.0, 5 * SERVED, results=40).measure()
    assert found["results"] == pytest.approx(40, abs=1)
