"""Outcomes as curves, tables and pictures."""

from __future__ import annotations

from xml.etree import ElementTree

from millrace.experiments.figures.curves import Curve, along, chart, curves, fitted, latency, level, table
from millrace.experiments.figures.experiment import Key, Outcome
from tests.unit.experiments.figures.outcomes import outcome

FOUND: dict[Key, Outcome] = {
    ("B", 10.0): outcome(latency=0.05),
    ("B", 0.5): outcome(latency=1.0),
    ("A", None): outcome(latency=20.0),
}


def test_a_curve_is_read_in_order_and_a_level_by_its_name() -> None:
    assert along(FOUND, "B", latency) == {0.5: 1.0, 10.0: 0.05}
    assert level(FOUND, "A", latency) == 20.0


def test_a_level_is_drawn_straight_across_the_other_curves() -> None:
    assert curves(FOUND, latency) == [Curve("A", [(0.5, 20.0), (10.0, 20.0)]), Curve("B", [(0.5, 1.0), (10.0, 0.05)])]


def test_a_table_has_a_row_for_every_setting() -> None:
    assert table(FOUND, "rate", seconds=latency) == [
        {"curve": "A", "rate": "", "seconds": 20.0},
        {"curve": "B", "rate": 0.5, "seconds": 1.0},
        {"curve": "B", "rate": 10.0, "seconds": 0.05},
    ]


def test_every_point_of_every_curve_lies_in_the_picture() -> None:
    made = chart("title", "rate", "seconds", [*curves(FOUND, latency), Curve("formula", [(1, 0.5)], dashed=True)])
    drawn = ElementTree.fromstring(made.svg())
    dots = [each.attrib for each in drawn.iter("{http://www.w3.org/2000/svg}circle") if each.attrib["r"] == "4"]
    assert len(dots) == 4
    for dot in dots:
        assert made.left <= float(dot["cx"]) <= made.width - made.right
        assert made.top <= float(dot["cy"]) <= made.height - made.bottom


def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm() -> None:
    axis = fitted("y", [0.0, 1.0, 100.0], log=True)
    assert (axis.low, axis.high) == (0.8, 125.0)
