from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from millrace.api.expectations import expected
from millrace.commands.command_line import main
from millrace.errors import RequestError
from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.language import parse_network
from millrace.plan.explain.cost_notes import Expected, cost_notes
from millrace.plan.explain.join_labels import following_label, join_label, join_notes, rows_join_label
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Project, Scan
from millrace.plan.physical.stages import physical

SECOND = 1_000_000
MINUTE = 60 * SECOND


def given(name: str, *columns: str) -> Node:
    """A stream under a name, as the input of a join has it."""
    fields = [*((column, pa.int64()) for column in columns), ("ts", TIMESTAMP)]
    stream = Stream(f"stream_{name}", pa.schema(fields), TimeContract("external", "ts"), Connector("csv"))
    return Project(Scan(stream), tuple((f"{name}.{column}", Column(column)) for column, _ in fields))


X, Y = given("x", "k"), given("y", "k")


def joined(left: Side, right: Side) -> Join:
    return Join((X, Y), (left, right))


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (
            (Side(("x.k",), 3 * MINUTE), Side(("y.k",), 2 * MINUTE)),
            "join x and y on x.k = y.k, y from 2 MINUTES before x to 3 MINUTES after it",
        ),
        (
            (Side(("x.k",), 5 * SECOND, outer=True), Side(("y.k",), 0)),
            "join x and y on x.k = y.k, y from the time of x to 5 SECONDS after it, with all rows of x",
        ),
        ((Side((), 0), Side((), 0)), "join x and y, y at the time of x"),
        ((Side((), 0), Side((), MINUTE)), "join x and y, y from 1 MINUTE before x to its time"),
        ((Side(("x.k",), 0, "x.expires"), Side(("y.k",), MINUTE)), "join x and y on x.k = y.k"),
    ],
)
def test_a_join_says_what_matches(sides: tuple[Side, Side], words: str) -> None:
    assert join_label(joined(*sides)) == words


def test_a_join_says_how_long_rows_are_kept_and_which_time_a_result_has() -> None:
    join = Join((X, Y), (Side((), MINUTE, "x.expires"), Side((), -SECOND)), Column("x.k"), 1)
    kept, *further = join_notes(join)
    assert kept.split("; ") == [
        "x is kept until the bound passes the earlier of its time + 1 MINUTE and x.expires",
        "y is kept until the bound passes its time - 1 SECOND",
    ]
    assert further == ["only where x.k", "a result has the time of y"]


def test_what_a_join_has_computed_is_shown_instead_of_its_name() -> None:
    computed = Project(X, (("x.ts", Column("x.ts")), ("x.__key0", Column("x.k")), ("x.__until", Column("x.ts"))))
    join = Join((computed, Y), (Side(("x.__key0",), None, "x.__until"), Side(("y.k",), 0)))
    assert join_label(join) == "join x and y on x.k = y.k"
    assert next(join_notes(join)).startswith("x is kept until the bound passes x.ts;")


def test_a_join_that_promises_about_pairs_says_so() -> None:
    *_, last = join_notes(Join((X, Y), (Side((), MINUTE), Side((), MINUTE)), joint=True))
    assert "joint" in last


def test_a_join_of_three_names_all_keys_and_no_band() -> None:
    sides = tuple(Side((f"{name}.k",), MINUTE) for name in "xyz")
    assert join_label(Join((X, Y, given("z", "k")), sides)) == "join x, y and z on x.k = y.k = z.k"


def test_the_input_of_a_pipeline_is_called_by_all_its_parts() -> None:
    below = Join((X, Y), (Side(("x.k",), 0), Side(("y.k",), 0)))
    sides = (Side(("y.k",), 0), Side(("z.k",), 0))
    assert join_label(Join((below, given("z", "k")), sides)).startswith("join x + y and z on y.k = z.k")


def test_a_join_by_rows_says_what_each_side_keeps() -> None:
    sides = (RowsSide(("x.k",), 100), RowsSide(("y.k",), 50, partition=("y.k",)))
    words = "join by rows x and y on x.k = y.k: x keeps the last 100 rows; y keeps the last 50 rows of its y.k"
    assert rows_join_label(RowsJoin((X, Y), sides)) == words
    mixed = (RowsSide(range=MINUTE), RowsSide())
    assert rows_join_label(RowsJoin((X, Y), mixed)).endswith("x keeps rows at most 1 MINUTE old; y keeps none")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"mode": "recent", "within": 5 * SECOND},
            "each row of x with the latest row of y not after it of equal x.k = y.k, at most 5 SECONDS older",
        ),
        (
            {"mode": "recent", "strict": True, "outer": True},
            "each row of x with the latest row of y before it of equal x.k = y.k, or with nulls",
        ),
        (
            {"mode": "chronicle"},
            "each row of x with the earliest row of y not after it that no other has used of equal x.k = y.k",
        ),
    ],
)
def test_a_sequence_says_which_row_is_found(given: Mapping[str, object], words: str) -> None:
    kind, found = following_label(Following((X, Y), (("x.k",), ("y.k",)), **given)).split(": ")  # type: ignore[arg-type]
    assert (kind, found) == ("as-of join" if given["mode"] == "recent" else "chronicle", words)


# What an in-order join costs (003): c = 0.5 ms, |w| = 60 s, 1 and 10 rows a second

IN_ORDER = Join((X, Y), (Side((), 60 * SECOND), Side((), 60 * SECOND)))


def costs(rates: Mapping[str, float], pair: float | None = 500.0, alpha: str = "0.3", join: Join = IN_ORDER) -> str:
    return "\n".join(cost_notes(join, "adaptive", {"alpha": alpha}, Expected(rates, pair)))


def test_without_rates_the_switch_point_is_told_for_a_stated_cost() -> None:
    text = costs({})
    assert "l1 * l2 = alpha / (c * |w|) = 10 on, for c = 500 MICROSECONDS per pair, |w| = 60 s" in text
    assert "load" not in text
    assert "c = 1 MICROSECOND per pair, as an example" in costs({}, None)


def test_with_rates_load_response_and_method_are_those_of_the_paper() -> None:
    text = costs({"stream_x": 1, "stream_y": 10}, alpha="0.29")
    assert "load is 2 * c * |w| * l1 * l2 = 0.6: it keeps up" in text
    assert "Sync-Filter 0.715 s, Filter-Order 0.55 s, I_rel 0.231" in text
    assert "Adaptive is in Filter-Order: c * |w| * l1 * l2 = 0.3 >= 0.29" in text
    assert "Adaptive is in Sync-Filter" in costs({"stream_x": 1, "stream_y": 5})


@pytest.mark.parametrize(("rate", "verdict"), [(10, "keeps up"), (20, "falls behind on one"), (40, "falls behind$")])
def test_a_join_that_cannot_keep_up_is_told(rate: float, verdict: str) -> None:
    assert re.search(f"it {verdict}", costs({"stream_x": 1, "stream_y": rate}), re.MULTILINE)


@pytest.mark.parametrize("rate", [17, 40, 100])
def test_a_join_that_falls_behind_has_no_mean_response(rate: float) -> None:
    text = costs({"stream_x": 1, "stream_y": rate})
    assert "I_rel" not in text and "mean response" not in text
    assert "rows pile up, and the response time of either method grows" in text


def test_a_rate_that_is_missing_is_named() -> None:
    assert "no rate is known for stream_y" in costs({"stream_x": 1})


def test_windows_that_differ_count_by_their_mean() -> None:
    join = Join((X, Y), (Side((), 90 * SECOND), Side((), 30 * SECOND)))
    assert "|w| = 60 s" in costs({}, join=join)


def test_where_a_column_says_how_long_there_is_no_formula() -> None:
    join = Join((X, Y), (Side((), None, "x.expires"), Side((), 0)))
    assert "cost (003)" not in costs({"stream_x": 1, "stream_y": 1}, join=join)


# What the user says

NETWORK = QueryNetwork((Query("q", IN_ORDER, Sink("q", Connector("memory"))),))


def test_rates_and_costs_are_read_from_words() -> None:
    found = expected({"stream_x": 1.5, "STREAM_Y ": " 10"}, "0.25us", NETWORK)
    assert (found.rates, found.pair) == ({"stream_x": 1.5, "stream_y": 10.0}, 0.25)


@pytest.mark.parametrize(
    ("rates", "pair", "fact"),
    [
        ({"stream_x": ""}, None, '"" is no rate of stream "stream_x"'),
        ({"stream_x": -1}, None, "is no rate"),
        ({"stream_x": "nan"}, None, "is no rate"),
        ({"stream_z": 1}, None, 'no query reads a stream "stream_z"'),
        ({}, "0ms", 'cannot cost "0ms"'),
        ({}, "much", "is not a length of time"),
    ],
)
def test_wrong_words_are_refused_with_a_hint(rates: dict[str, float | str], pair: str | None, fact: str) -> None:
    with pytest.raises(RequestError, match=fact) as raised:
        expected(rates, pair, NETWORK)
    assert raised.value.hint


# The whole plan

STREAMS = "".join(
    f"CREATE STREAM {name} (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{name}');"
    for name in "abc"
)
BAND = "FROM a [RANGE 1 MINUTE] AS x, b [RANGE 1 MINUTE] AS y WHERE x.k = y.k"


def explained(query: str) -> str:
    return explain(physical(parse_network(STREAMS + query)))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"SELECT * {BAND}", "| order-agnostic: a row is joined when it arrives"),
        (f"SELECT * {BAND}", "exchange by y.k "),
        (f"SELECT * {BAND} WITH (baseline = 'in_order')", "| baseline in_order: the inputs are sorted before"),
        (f"SELECT * {BAND} ORDER BY ts", "| in order by Adaptive, alpha 0.05"),
        (f"SELECT * {BAND} ORDER BY ts", "order by time: as the join below gives its rows"),
        (f"SELECT * {BAND} ORDER BY ts WITH (join = 'sync_filter')", "| in order by Sync-Filter"),
        (f"SELECT * {BAND} ORDER BY ts WITH (join = 'filter_order')", "| in order by Filter-Order"),
        (f"SELECT * {BAND} ORDER BY ts WITH (join = 'oop')", "order by time: a row leaves when no input"),
        ("SELECT * FROM a JOIN b USING (k) JOIN c USING (k) WINDOW 1 MINUTE", "| one multi-way join"),
        ("SELECT a.n FROM a JOIN b USING (k) JOIN c ON b.n = c.n WINDOW 1 MINUTE", "| a pipeline of joins of two"),
        ("SELECT * FROM a [ROWS 1] AS x, b AS y WHERE x.k = y.k", "x keeps the last row; y keeps none"),
        ("SELECT * FROM a ASOF JOIN b ON b.ts <= a.ts", "as-of join: each row of a with the latest row of b"),
        (f"SELECT x.ts, y.ts, count(*) {BAND} GROUP BY x.ts, y.ts", "each pair of x.ts and y.ts"),
    ],
)
def test_a_plan_says_how_it_joins(query: str, words: str) -> None:
    assert words in explained(query)


def test_the_command_takes_rates_and_the_cost_of_a_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "query.sql"
    file.write_text(f"{STREAMS} SELECT * {BAND} ORDER BY ts")
    assert main(["explain", str(file), "--rate", "a=10", "--rate", "b=1", "--pair-cost", "0.5ms"]) == 0
    assert "I_rel 0.231" in capsys.readouterr().out
    assert main(["explain", str(file), "--rate", "d=10"]) == 2
    assert 'no query reads a stream "d"' in capsys.readouterr().err
