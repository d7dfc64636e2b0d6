from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

import millrace as mr
from millrace.errors import RequestError

SECOND = 1_000_000
Row = tuple[str, int, int]


def rows(*given: Row) -> list[dict[str, Any]]:
    return [{"k": key, "n": number, "ts": second * SECOND} for key, number, second in given]


def network(**streams: list[Row]) -> tuple[mr.Network, list[mr.Relation]]:
    net = mr.Network()
    columns = "k STRING, n INT, ts TIMESTAMP"
    return net, [net.stream(name, columns, time="ts", source=[rows(*given)]) for name, given in streams.items()]


def answers(relation: mr.Relation, **settings: object) -> list[tuple[Any, ...]]:
    """The rows of a relation in the order in which they came, without their times."""
    net: Any = relation.network
    table = net.query("q", relation, settings=settings).run(on="local", until="end").results("q")
    kept = [name for name in table.column_names if not name.endswith("ts")]
    return [tuple(row[name] for name in kept) for row in table.to_pylist()]


def named_by_default(*relations: mr.Relation) -> list[str]:
    return re.findall(r"AS (\w+)", relations[0].join(relations[1], on="k", within="1 second").sql)


A: list[Row] = [("x", 1, 1), ("y", 2, 5), ("x", 3, 20)]
B: list[Row] = [("x", 10, 4), ("y", 20, 4), ("z", 30, 5), ("x", 40, 15)]


# Joins


def test_a_join_is_by_columns_and_within_a_length_of_time() -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.join(b, on="k", within="5 seconds")
    assert joined.sql == "SELECT * FROM a [RANGE 5 seconds] AS a JOIN b [RANGE 5 seconds] AS b USING (k)"
    assert joined.schema.names == ["k", "a_n", "a_ts", "b_n", "b_ts"]
    assert sorted(answers(joined)) == [("x", 1, 10), ("x", 3, 40), ("y", 2, 20)]


def test_each_side_may_have_a_length_of_its_own() -> None:
    _, (a, b) = network(a=A, b=B)
    later = a.join(b, on=["k"], within={"left": "3 seconds", "right": "0 seconds"})
    assert sorted(answers(later)) == [("x", 1, 10)]


def test_a_condition_may_say_it_all() -> None:
    _, (a, b) = network(a=A, b=B)
    condition = "x.k = y.k AND y.ts BETWEEN x.ts - INTERVAL 1 SECOND AND x.ts + INTERVAL 3 SECONDS AND y.n > 10"
    joined = a.join(b, on=condition, names=("x", "y")).select("x.k", "y.n")
    assert answers(joined) == [("y", 20)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("left", [("x", 1, 10), ("x", 3, None), ("y", 2, None)]),
        ("right", [("x", 1, 10), ("x", None, 40), ("y", None, 20), ("z", None, 30)]),
    ],
)
def test_an_outer_join_keeps_what_matched_nothing(how: Any, expected: list[tuple[Any, ...]]) -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.join(b, on="k", within={"left": "3 seconds", "right": "0 seconds"}, how=how)
    assert sorted(answers(joined), key=str) == sorted(expected, key=str)


def test_a_join_without_columns_is_one_of_all_with_all() -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.join(b, within="1 second").select("a.n AS left_n", "b.n AS right_n")
    assert sorted(answers(joined)) == [(2, 10), (2, 20), (2, 30)]


def test_a_join_may_be_over_the_last_rows_of_each() -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.join(b, on="k", rows={"left": 1, "right": 2})
    assert "a [ROWS 1] AS a JOIN b [ROWS 2] AS b" in joined.sql
    assert sorted(answers(joined)) == [("x", 1, 10), ("x", 3, 40), ("y", 2, 20)]
    assert "[ROWS 5 PARTITION BY k]" in a.join(b, on="k", rows=5, partition_by="k").sql


def test_a_stream_can_be_joined_with_itself() -> None:
    _, (a,) = network(a=A)
    pairs = a.join(a, on="x.n < y.n", within="5 seconds", names=("x", "y")).select(first="x.n", second="y.n")
    assert answers(pairs) == [(1, 2)]
    assert named_by_default(a, a) == ["left", "right"]


def test_filtered_and_selected_relations_are_joined_as_they_are() -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.where("n < 3").join(b.select("k", "ts", twice="n * 2"), on="k", within="5 seconds", names=("x", "y"))
    assert sorted(answers(joined.select("k", "x.n", "y.twice"))) == [("x", 1, 20), ("y", 2, 40)]


# Upon a join


def test_a_join_is_filtered_selected_and_counted() -> None:
    _, (a, b) = network(a=A, b=B)
    joined = a.join(b, on="k", within="5 seconds").where("a.n > 1").where("b.n > 20")
    assert answers(joined.select("k", total="a.n + b.n")) == [("x", 43)]


@pytest.mark.parametrize(("by", "starts"), [("a.ts", [0, 20]), ("b.ts", [0, 10]), (None, [0, 20])])
def test_windows_of_a_join_go_by_either_time_or_by_the_later(by: str | None, starts: list[int]) -> None:
    net, (a, b) = network(a=A, b=B)
    joined = a.join(b, on="k", within="5 seconds").where("k = 'x'")
    counts = joined.window(range="10 seconds", by=by).group_by("k").agg(n="count(*)", most="max(b.n)")
    table = net.query("q", counts).run(on="local", until="end").results("q")
    assert [each.second for each in table.sort_by("window_start").column("window_start").to_pylist()] == starts


def test_a_window_of_a_join_needs_an_aggregate_to_stand_behind() -> None:
    _, (a, b) = network(a=A, b=B)
    with pytest.raises(RequestError, match=r"the windows of a join have no aggregate(.|\n)*count"):
        a.join(b, on="k", within="1 second").window(range="1 minute").group_by("k").agg()


@pytest.mark.parametrize("method", ["oop", "sync_filter", "filter_order", "adaptive"])
def test_a_join_is_ordered_by_the_later_time_with_every_method(method: str) -> None:
    net, (a, b) = network(a=[("x", n, n) for n in range(0, 40, 3)], b=[("x", n, n) for n in range(0, 40, 2)])
    ordered = a.join(b, on="k", within="4 seconds").select(ts="greatest(a.ts, b.ts)").order_by_time()
    net.query("q", ordered, settings={"join": method})
    times = net.run(on="local", until="end").results("q").column("ts").to_pylist()
    assert len(times) > 40
    assert times == sorted(times)


# Three and more


def test_a_join_can_be_joined_again_as_one_join_of_all() -> None:
    net, (a, b, c) = network(a=A, b=B, c=[("x", 100, 3), ("y", 200, 30)])
    joined = a.join(b, on="k", within="5 seconds").join(c, on="k", within="5 seconds")
    assert joined.sql.count("JOIN") == 2
    assert "multi-way" in net.query("p", joined).explain()
    assert answers(joined.select("k", "a.n", "b.n", "c.n")) == [("x", 1, 10, 100)]


def test_a_condition_on_a_join_holds_before_a_further_join() -> None:
    _, (a, b, c) = network(a=A, b=B, c=[("x", 100, 3)])
    pairs = a.join(b, on="k", within="5 seconds").where("a.n > 1")
    left = pairs.join(c, on="k", within="5 seconds", how="left", names="c").select("k", "a.n", "c.n")
    assert sorted(answers(left)) == [("x", 3, None), ("y", 2, None)]


def test_windows_that_differ_along_a_chain_are_refused_with_a_way_out() -> None:
    _, (a, b, c) = network(a=A, b=B, c=[])
    pairs = a.join(b, on="k", within="5 seconds")
    with pytest.raises(RequestError, match=r'"a" has the window \[RANGE 5 seconds\](.|\n)*\.select'):
        pairs.join(c, on="k", within="1 minute")
    assert "c [RANGE 1 minute]" in pairs.join(c, on="k", within={"right": "1 minute"}).sql


# Sequences


def test_an_as_of_join_finds_the_latest_row_before() -> None:
    _, (a, b) = network(a=A, b=B)
    found = b.asof_join(a, on="k", how="left")
    assert found.sql == "SELECT * FROM b ASOF LEFT JOIN a MATCH_CONDITION (a.ts <= b.ts) USING (k)"
    assert found.schema.names == ["k", "b_n", "b_ts", "a_n", "a_ts"]
    ordered = sorted(answers(found.select("b.n", "a.n")), key=str)
    assert ordered == [(10, 1), (20, None), (30, None), (40, 1)]


def test_an_as_of_join_may_be_strict_and_has_a_tolerance() -> None:
    _, (a, b) = network(a=[("x", 1, 4), ("x", 2, 9)], b=[("x", 10, 4), ("x", 20, 8), ("x", 30, 9), ("x", 40, 60)])
    near = b.asof_join(a, on="k", strict=True, tolerance="5 seconds", names=("late", "early"))
    assert sorted(answers(near.select("late.n", "early.n"))) == [(20, 1), (30, 1)]


def test_as_of_joins_one_after_another_all_look_back_from_the_first() -> None:
    _, (a, b, c) = network(a=A, b=B, c=[("x", 100, 2), ("x", 200, 14), ("y", 300, 5)])
    found = b.asof_join(a, on="k").asof_join(c, on="k", how="left").where("b.n > 1")
    assert found.schema.names == ["k", "b_n", "b_ts", "a_n", "a_ts", "c_n", "c_ts"]
    assert sorted(answers(found.select("b.n", "a.n", "c.n"))) == [(10, 1, 100), (40, 1, 200)]


@pytest.mark.parametrize(
    ("by", "expected"), [("a", [(1, 10, None), (3, 40, 200)]), ("b", [(1, 10, 100), (3, 40, 100)])]
)
def test_an_as_of_join_after_a_join_looks_back_from_the_time_that_is_named(by: str, expected: Any) -> None:
    given: dict[str, list[Row]] = {"a": A, "b": B, "c": [("x", 100, 3), ("x", 200, 17)]}
    _, (a, b, c) = network(**given)
    pairs = a.join(b, on="k", within="5 seconds").where("k = 'x'")
    flat = pairs.asof_join(c, on="k", how="left", by=(f"{by}.ts", "ts")).select("a.n", "b.n", "c.n")
    assert sorted(answers(flat)) == expected
    _, (a, b, c) = network(**given)
    pairs = a.join(b, on="k", within="5 seconds").where("k = 'x'")
    nested = pairs.asof_join(c, on="k", how="left", by=(f"{by}_ts", "ts"), names=("x", "y"))
    assert sorted(answers(nested.select("x.a_n", "x.b_n", "y.n"))) == expected


def test_an_as_of_join_asks_which_time_of_joined_rows_is_meant() -> None:
    _, (a, b, c) = network(a=A, b=B, c=[])
    pairs = a.join(b, on="k", within="5 seconds")
    with pytest.raises(RequestError, match=r"several times(.|\n)*by=\('a.ts', 'ts'\) or by=\('b.ts', 'ts'\)"):
        pairs.asof_join(c, on="k")
    with pytest.raises(RequestError, match=r"several times(.|\n)*by=\('a_ts', 'ts'\)"):
        pairs.asof_join(c, on="k", names=("x", "y"))
    with pytest.raises(RequestError, match=r"several times(.|\n)*by=\('ts', 'a_ts'\)"):
        c.asof_join(pairs, on="k")
    with pytest.raises(RequestError, match=r'no time "d.ts"(.|\n)*a.ts'):
        pairs.asof_join(c, on="k", by=("d.ts", "ts"))


def test_what_an_as_of_join_gives_can_be_joined_and_ordered() -> None:
    _, (a, b, c) = network(a=A, b=B, c=[("x", 100, 5), ("x", 200, 14)])
    joined = b.asof_join(a, on="k").join(c, on="k", within="2 seconds", names=("x", "c")).order_by_time()
    assert answers(joined.select("x.b_n", "x.a_n", "c.n")) == [(10, 1, 100), (40, 1, 200)]


def test_an_as_of_join_with_windows_goes_by_those_that_have_ended() -> None:
    _, (a, b) = network(a=[("x", 1, 1), ("x", 2, 59), ("x", 3, 61)], b=[("x", 10, 59), ("x", 20, 60), ("x", 30, 90)])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)")
    found = b.asof_join(counts, on="k", how="left", names=("b", "w")).select("b.n", "w.n")
    assert sorted(answers(found), key=str) == [(10, None), (20, 2), (30, 2)]
    _, (a, b) = network(a=[("x", 1, 1), ("x", 2, 59), ("x", 3, 61)], b=[("x", 10, 59), ("x", 20, 60), ("x", 30, 90)])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)")
    last = counts.asof_join(b, on="k", names=("w", "b")).select("w.n", "b.n")
    assert sorted(answers(last)) == [(1, 30), (2, 10)]


def test_a_sequence_takes_the_latest_or_the_earliest_that_is_free() -> None:
    given: dict[str, list[Row]] = {"a": [("x", 1, 1), ("x", 2, 2)], "b": [("x", 10, 3), ("x", 20, 4), ("x", 30, 5)]}
    _, (a, b) = network(**given)
    assert sorted(answers(a.seq(b, on="k").select("a.n", "b.n"))) == [(2, 10), (2, 20), (2, 30)]
    _, (a, b) = network(**given)
    paired = a.seq(b, on="k", mode="chronicle", within="1 minute", outer=True)
    assert sorted(answers(paired.select("a.n", "b.n")), key=str) == [(1, 10), (2, 20), (None, 30)]


def test_a_chronicle_may_be_limited_by_rows() -> None:
    _, (a, b) = network(a=A, b=B)
    assert a.seq(b, mode="chronicle", state_limit=10).sql.endswith("MODE CHRONICLE WITH (state_limit = 10)")
    with pytest.raises(RequestError, match=r"for ever(.|\n)*within='5 minutes'(.|\n)*state_limit="):
        a.seq(b, mode="chronicle")


def test_a_sequence_of_three_goes_step_by_step() -> None:
    _, (a, b, c) = network(a=[("x", 1, 1)], b=[("x", 10, 3)], c=[("x", 100, 4), ("x", 200, 2)])
    assert answers(a.seq(b, c, on="k", within="5 seconds").select("a.n", "b.n", "c.n")) == [(1, 10, 100)]


def test_columns_of_a_sequence_stay_those_of_each() -> None:
    _, (a, b) = network(a=A, b=B)
    pairs = a.seq(b, on="k").window(range="1 minute")
    assert pairs.group_by("b.k").agg(n="count(*)").schema.names == ["window_start", "window_end", "k", "n"]
    with pytest.raises(RequestError, match=r"several inputs(.|\n)*Write a\.k or b\.k"):
        pairs.group_by("k").agg(n="count(*)")


# What cannot be meant


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ({"on": "k", "within": 5}, "RANGE is a number without a unit"),
        ({"on": "k", "within": 5.5}, 'within cannot be "5.5"'),
        ({"on": "k", "within": {"both": "5 seconds"}}, "within cannot be"),
        ({"on": "k", "within": "x"}, 'within is a length of time, not "x"'),
        ({"on": "k", "within": {"left": "5 seconds", "right": "x"}}, 'within is a length of time, not "x"'),
        ({"on": "k", "rows": "5"}, 'rows cannot be "5"'),
        ({"on": "k", "rows": 5, "within": "1 second"}, "both a window of rows and a window of time"),
        ({"on": "k", "within": "1 second", "partition_by": "k"}, "partition_by needs rows"),
        ({"on": "k", "within": "1 second", "how": "outer"}, 'how cannot be "outer"'),
        ({"within": "1 second", "how": "left"}, "needs a condition"),
        ({"on": "k", "within": "1 second", "names": ("x", "X")}, "names that differ"),
        ({"on": "k", "within": "1 second", "names": "x"}, "2 names"),
    ],
)
def test_a_join_that_cannot_be_meant_is_refused_with_a_hint(given: Any, fact: str) -> None:
    _, (a, b) = network(a=A, b=B)
    with pytest.raises(RequestError, match=fact) as raised:
        a.join(b, **given)
    assert raised.value.hint


def test_a_join_that_would_keep_rows_for_ever_is_refused_at_once() -> None:
    _, (a, b) = network(a=A, b=B)
    with pytest.raises(RequestError, match=r'rows of "a" for ever(.|\n)*within=\'5 minutes\'(.|\n)*rows=100'):
        a.join(b, on="k")
    with pytest.raises(RequestError, match=r'rows of "b" for ever(.|\n)*both sides: within=\{'):
        a.join(b, on="k", within={"left": "3 seconds"})
    assert a.join(b, on=["k", "ts"]).schema.names == ["k", "ts", "a_n", "b_n"]


def test_a_sequence_or_an_as_of_join_that_cannot_be_meant_is_refused_in_terms_of_python() -> None:
    _, (a, b) = network(a=A, b=B)
    with pytest.raises(RequestError, match=r"two relations or more(.|\n)*a\.seq\(b\)"):
        a.seq()
    with pytest.raises(RequestError, match='within is a length of time, not "x"'):
        a.seq(b, within="x")
    with pytest.raises(RequestError, match='tolerance is a length of time, not "x"'):
        a.asof_join(b, on="k", tolerance="x")


def test_windows_are_not_joined_before_they_are_aggregated() -> None:
    _, (a, b) = network(a=A, b=B)
    windows: Any = a.window(range="5 seconds")
    for use in (lambda: windows.join(b, on="k"), lambda: windows.where("n > 1"), lambda: a.join(windows, on="k")):
        with pytest.raises(RequestError, match="windows must be aggregated before their rows are used"):
            use()
    assert not hasattr(windows, "no_such_thing")


def test_lengths_of_time_may_be_timedeltas() -> None:
    net, (a, b) = network(a=A, b=B)
    short, none = timedelta(seconds=1.5), timedelta(0)
    assert a.join(b, on="k", within=short).sql == a.join(b, on="k", within="1500 milliseconds").sql
    assert "b [RANGE 0 seconds]" in a.join(b, on="k", within={"left": short, "right": none}).sql
    assert a.asof_join(b, on="k", tolerance=short).sql.count("INTERVAL 1500 milliseconds") == 1
    assert a.seq(b, on="k", within=timedelta(hours=1)).sql.endswith("WITHIN INTERVAL 1 hours")
    assert "[RANGE 1 days SLIDE 12 hours]" in (
        a.window(range=timedelta(days=1), slide=timedelta(hours=12)).agg(n="count(*)").sql
    )
    net.stream("c", "ts TIMESTAMP", time="ts", disorder=short, lull=timedelta(minutes=2), source=[])
    assert "DISORDER INTERVAL 1500 milliseconds" in net.script
    assert "LULL INTERVAL 2 minutes" in net.script


def test_relations_of_two_networks_are_not_joined() -> None:
    _, (a,) = network(a=A)
    _, (b,) = network(b=B)
    for method in (a.join, a.asof_join, a.seq):
        with pytest.raises(RequestError, match="another network"):
            method(b)


def test_a_latent_stream_has_no_time_to_look_back_from() -> None:
    net, (a,) = network(a=A)
    latent = net.stream("l", "k STRING", latent=True, source=[])
    with pytest.raises(RequestError, match="no time column"):
        latent.asof_join(a, on="k")


def test_a_name_of_a_query_is_taken_once_however_queries_are_added() -> None:
    net, (a, b) = network(a=A, b=B)
    net.sql("CREATE SINK late_c TO console")
    c = net.stream("c", "ts TIMESTAMP", time="ts", late_into="late_c", source=[])
    net.query("c1", c).query("c2", c)
    joined = a.join(b, on="k", within="1 second")
    net.query("q", joined).sql(f"CREATE QUERY r AS {joined.sql}").sql("SELECT * FROM a").sql("SELECT * FROM b")
    for name in ("q", "R", "late_c"):
        with pytest.raises(RequestError, match="declared twice"):
            net.query(name, joined)
        with pytest.raises(RequestError, match="declared twice"):
            net.sql(f"CREATE QUERY {name} AS SELECT * FROM a")
    with pytest.raises(RequestError, match="declared twice"):
        net.stream("d", "ts TIMESTAMP", time="ts", late_into="r", source=[])
    net.sql("DROP QUERY q").query("q", a)
    assert [each.name for each in net.bound().queries] == ["late_c", "c1", "c2", "r", "query_1", "query_2", "q"]


def test_explain_tells_what_an_in_order_join_will_cost() -> None:
    net, (a, b) = network(a=A, b=B)
    net.query("q", a.join(b, on="k", within="1 minute").order_by_time(), settings={"alpha": 0.29})
    assert "Adaptive is in Filter-Order" in net.explain(rates={"a": 1, "b": 10}, pair_cost="0.5ms")
    with pytest.raises(RequestError, match='no query reads a stream "c"'):
        net.explain(rates={"c": 1})
