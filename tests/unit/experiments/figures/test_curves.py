"""What was measured, as curves."""

from __future__ import annotations

from millrace.experiments.figures.curves import Curve, Results

FOUND = Results({("B", 10.0): {"latency": 0.05}, ("B", 0.5): {"latency": 1.0}, ("A", None): {"latency": 20.0}})


def test_a_curve_is_read_in_order_and_a_level_by_its_name() -> None:
    assert FOUND.along("B", "latency") == {0.5: 1.0, 10.0: 0.05}
    assert FOUND.level("A", "latency") == 20.0


def test_a_ratio_of_curves_is_that_of_their_values_at_the_same_places() -> None:
    found = Results({("C", 1.0): {"latency": 3.0}, ("D", 1.0): {"latency": 2.0}, ("D", 2.0): {"latency": 9.0}})
    assert found.ratios("C", "D", "latency") == {1.0: 1.5}


def test_a_level_is_drawn_straight_across_the_other_curves() -> None:
    level = Curve("A", [(0.5, 20.0), (10.0, 20.0)], level=True)
    assert FOUND.curves("latency") == [level, Curve("B", [(0.5, 1.0), (10.0, 0.05)])]


def test_curves_under_a_common_start_have_the_rest_as_their_names() -> None:
    found = Results({("even, Sync", 1.0): {"latency": 3.0}, ("Poisson, Sync", 1.0): {"latency": 2.0}})
    assert found.curves("latency", "even, ") == [Curve("Sync", [(1.0, 3.0)])]
