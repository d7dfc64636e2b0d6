"""What was measured, as curves and pictures."""

from __future__ import annotations

from xml.etree import ElementTree

from millrace.experiments.figures.curves import Chart, Curve, Results, fitted
from millrace.experiments.pictures import BOTTOM, LEFT, RIGHT, TOP

FOUND = Results({("B", 10.0): {"latency": 0.05}, ("B", 0.5): {"latency": 1.0}, ("A", None): {"latency": 20.0}})


def test_a_curve_is_read_in_order_and_a_level_by_its_name() -> None:
    assert FOUND.along("B", "latency") == {0.5: 1.0, 10.0: 0.05}
    assert FOUND.level("A", "latency") == 20.0


def test_a_ratio_of_curves_is_that_of_their_values_at_the_same_places() -> None:
    found = Results({("C", 1.0): {"latency": 3.0}, ("D", 1.0): {"latency": 2.0}, ("D", 2.0): {"latency": 9.0}})
    assert found.ratios("C", "D", "latency") == {1.0: 1.5}


def test_a_level_is_drawn_straight_across_the_other_curves() -> None:
    assert FOUND.curves("latency") == [Curve("A", [(0.5, 20.0), (10.0, 20.0)]), Curve("B", [(0.5, 1.0), (10.0, 0.05)])]


def test_every_point_of_every_curve_lies_in_the_picture() -> None:
    made = Chart("rate", "seconds", "latency", {"formula": lambda rate: 0.5 / rate}).picture("title", FOUND)
    drawn = ElementTree.fromstring(made.svg())
    dots = [each.attrib for each in drawn.iter("{http://www.w3.org/2000/svg}circle") if each.attrib["r"] == "4"]
    assert len(dots) == 4
    for dot in dots:
        assert LEFT <= float(dot["cx"]) <= RIGHT
        assert TOP <= float(dot["cy"]) <= BOTTOM


def test_places_that_are_no_numbers_are_named_at_the_axis_and_in_the_table() -> None:
    chart = Chart("keys", "seconds", "latency", log="y", places=("uniform", "skewed"))
    found = Results({("A", 0.0): {"latency": 1.0}, ("A", 1.0): {"latency": 2.0}})
    assert ">skewed<" in chart.picture("title", found).svg()
    assert [chart.place_text(place) for place in (0.0, 1.0, None)] == ["uniform", "skewed", ""]


def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm() -> None:
    axis = fitted("y", [0.0, 1.0, 100.0], log=True)
    assert (axis.low, axis.high) == (0.8, 125.0)
