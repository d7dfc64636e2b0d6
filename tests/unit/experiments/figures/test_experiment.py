"""A figure: its table, one row per case."""

from __future__ import annotations

from millrace.experiments.figures.curves import Chart, Results
from millrace.experiments.figures.experiment import PLACE, Figure

FOUND = Results({("B, x", 10.0): {"latency": 0.05}, ("B, x", 0.5): {"latency": 1.0}, ("A, y", None): {"latency": 20.0}})


def figure(curve: tuple[str, ...] = ("curve",), sort_rows: bool = True) -> Figure:
    columns = {"rate": PLACE, "seconds": "latency"}
    chart = Chart("rate", "seconds", "latency")
    return Figure("name", "paper", "shows", dict, columns, chart, lambda found: [], curve, sort_rows)


def test_a_table_has_a_row_per_case_sorted_by_curve_and_place() -> None:
    assert figure().table(FOUND) == [
        {"curve": "A, y", "rate": "", "seconds": 20.0},
        {"curve": "B, x", "rate": 0.5, "seconds": 1.0},
        {"curve": "B, x", "rate": 10.0, "seconds": 0.05},
    ]


def test_a_table_may_keep_the_order_of_the_cases() -> None:
    assert [row["seconds"] for row in figure(sort_rows=False).table(FOUND)] == [0.05, 1.0, 20.0]


def test_the_name_of_a_curve_may_be_divided_into_columns() -> None:
    assert figure(("letter", "kind")).table(FOUND)[0] == {"letter": "A", "kind": "y", "rate": "", "seconds": 20.0}
