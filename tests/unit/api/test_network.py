from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.errors import RequestError, RunError

COLUMNS = "k STRING, n INT, ts TIMESTAMP"
SECOND = 1_000_000


def rows(*pairs: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"k": key, "n": number, "ts": second * SECOND} for key, number, second in pairs]


def test_the_methods_build_the_query_that_sql_would() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", disorder="5 seconds", source=[rows(("x", 1, 5), ("y", 2, 1))])
    b = net.stream("b", COLUMNS, time="ts", source=[rows(("x", 10, 3))])
    net.query("sorted", a.union(b).where("n > 1").order_by_time())
    net.query("sums", a.union(b).window(range="10 seconds").group_by("k").agg(s="sum(n)"))
    handle = net.run(on="local", until="end")
    assert handle.results("sorted").column("n").to_pylist() == [2, 10]
    sums = {row["k"]: row["s"] for row in handle.results("sums").to_pylist()}
    assert sums == {"x": 11, "y": 2}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"disorder_rows": 3}, "external time ts, disorder 3 ROWS, ETS none"),
        ({"punctuated_by": "n > 1"}, "external time ts, punctuated by (n > 1), ETS none"),
        (
            {"disorder": "1 second", "partitioned_by": ["k", "n"], "lull": "1 minute"},
            "external time ts, disorder 1 SECOND in each partition of k, n, ETS on demand lull 1 MINUTE",
        ),
        (
            {"ets": "10 milliseconds", "skew": "1 second", "max_future_skew": "5 minutes"},
            "external time ts, ordered, ETS every 10 MILLISECONDS skew 1 SECOND, at most 5 MINUTES ahead",
        ),
        ({"ets": "none"}, "external time ts, ordered, ETS none"),
    ],
)
def test_what_a_stream_promises_can_be_said_in_python(given: dict[str, Any], words: str) -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=[], **given))
    assert f"stream a: {words}\n" in net.explain()


def test_a_stream_has_one_order_and_only_where_its_time_comes_from_outside() -> None:
    with pytest.raises(mr.MillraceError, match="one order"):
        mr.Network().stream("a", COLUMNS, time="ts", disorder="1 second", disorder_rows=5)
    with pytest.raises(mr.MillraceError, match="only a stream with time= has an order"):
        mr.Network().stream("a", COLUMNS, latent=True, disorder="1 second")


def test_a_relation_can_be_selected_and_filtered_again() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1), ("x", 2, 2), ("x", 3, 3))])
    again = a.select("k", twice="n * 2").where("twice > 2").select(more="twice + 1")
    assert again.schema.names == ["more"]
    handle = net.query("q", again).run(on="local", until="end")
    assert handle.results("q").column("more").to_pylist() == [5, 7]


def test_a_mistake_is_told_at_once_and_leaves_the_network_as_it_was() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(mr.MillraceError, match='column "nn" does not exist'):
        a.where("nn > 1")
    with pytest.raises(mr.MillraceError, match="one kind of time"):
        net.stream("b", COLUMNS, time="ts", latent=True)
    with pytest.raises(mr.MillraceError):
        net.stream("c", "k SOMETHING", latent=True)
    net.query("q", a.select("k")).run(on="local", until="end")


def test_a_query_can_write_files(tmp_path: Path) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    net.query("q", a, sink="parquet", path=tmp_path / "out").run(on="local", until="end")
    assert pq.read_table(tmp_path / "out").num_rows == 1


@pytest.mark.parametrize("sink", ["memory", "console"])
def test_options_that_a_sink_does_not_take_are_refused(sink: str) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(
        RequestError, match=rf'"{sink}" takes the option keep( or limit)? alone(.|\n)*settings={{\'share\': 2}}'
    ):
        net.query("q", a, sink=sink, share=2)
    assert net.bound().queries == ()


def test_a_query_has_settings_of_its_own(tmp_path: Path) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1), ("x", 2, 2))])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)")
    net.query("q", counts, settings={"slack": "5 seconds", "share": 2, "flush": "lazy_flush(2)"})
    net.query("r", counts, sink="csv", settings={"strategy": "bfs"}, path=tmp_path / "out")
    kept, written = net.bound().queries
    assert kept.options == {"slack": "5000000", "share": "2", "flush": "lazy_flush(2)"}
    assert (written.options, written.sink.connector.format) == ({"strategy": "bfs"}, "csv")
    assert net.run(on="local", until="end").results("q").column("n").to_pylist() == [2]


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"shares": 2}, 'option "shares" is unknown'),
        ({"slack": "it's long"}, 'option "slack" cannot be "it\'s long"'),
        ({"state_limit": 5}, 'option "state_limit" has no effect'),
        ("bfs", "settings are names and values"),
    ],
)
def test_wrong_settings_are_refused(settings: Any, fact: str) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match=fact) as raised:
        net.query("q", a, settings=settings)
    assert raised.value.hint
    assert net.bound().queries == ()


def test_a_live_run_goes_on_until_it_is_stopped() -> None:
    release = threading.Event()

    def feed() -> Iterator[list[dict[str, Any]]]:
        yield rows(("x", 1, 1))
        release.wait(300)
        yield rows(("x", 2, 2))
        while True:
            time.sleep(0.01)
            yield []

    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=feed()))
    handle = net.run(on="local")
    release.set()
    for _ in range(500):
        if handle.results("q").num_rows == 2:
            break
        time.sleep(0.01)
    assert handle.stop().results("q").column("n").to_pylist() == [1, 2]
    assert handle.metrics().sources["a"].received == 2


def test_rows_that_do_not_fit_the_columns_are_refused() -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=[[{"k": "x", "n": "many", "ts": 0}]]))
    with pytest.raises(mr.MillraceError, match='stream "a" was fed rows that do not fit'):
        net.run(on="local", until="end")


@pytest.mark.parametrize("cost", [200_000, "200 milliseconds", timedelta(milliseconds=200)])
def test_what_a_row_takes_in_virtual_time_may_be_said_in_words(cost: object) -> None:
    net = mr.Network()
    updates = [[{"k": "x", "n": number, "ts": number}] for number in range(3)]
    net.query("q", net.stream("a", COLUMNS, time="ts", update_key="k", source=updates).select("k", "n"))
    handle = net.run(on="virtual", until="end", cost=cost)
    assert handle.results("q").to_pylist()[-1]["n"] == 2
    assert handle.metrics().queues["q"].cost == 200_000


def test_sql_and_python_share_a_network() -> None:
    net = mr.Network()
    table = pa.table({"k": ["x"], "n": pa.array([1], pa.int32()), "ts": pa.array([0], pa.timestamp("us", tz="UTC"))})
    net.stream("a", COLUMNS, time="ts", source=[table])
    net.sql("CREATE QUERY q AS SELECT n + 1 AS m FROM a;")
    assert net.run(on="virtual", until="end").results("q").to_pylist() == [{"m": 2}]
    assert "query q" in net.explain()


# Statements are accepted whole or not at all


def test_a_refused_second_declaration_leaves_the_first_streams_rows_alone() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    with pytest.raises(mr.MillraceError, match='"a" is declared twice'):
        net.stream("a", COLUMNS, time="ts", source=[rows(("y", 2, 2))])
    assert net.query("q", a.select("k")).run(on="local", until="end").results("q").to_pylist() == [{"k": "x"}]


def test_a_refused_query_with_a_sink_can_be_tried_again(tmp_path: Path) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    with pytest.raises(mr.MillraceError):
        net.query("q", replace(a, items="nn"), sink="csv", path=tmp_path / "out")
    net.query("q", a, sink="csv", path=tmp_path / "out").run(on="local", until="end")
    assert list((tmp_path / "out").glob("part-*"))


@pytest.mark.parametrize("end", [" -- the end", "; -- the end", ";\n-- the end\n", " /* the end */ ;"])
def test_a_statement_may_end_in_a_comment(end: str) -> None:
    net = mr.Network()
    net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    net.sql(f"CREATE QUERY q AS SELECT k FROM a{end}").sql("CREATE QUERY r AS SELECT n FROM a")
    handle = net.run(on="local", until="end")
    assert handle.results("r").to_pylist() == [{"n": 1}]


# What cannot be meant is refused


def test_relations_of_another_network_are_refused() -> None:
    net, other = mr.Network(), mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    foreign = other.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match="belongs to another network"):
        net.query("q", foreign)
    with pytest.raises(RequestError, match="belongs to another network"):
        a.union(foreign)


def test_what_is_no_relation_is_refused() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match=r"windows must be aggregated before their rows are used(.|\n)*\.agg\("):
        net.query("q", a.window(range="1 minute"))  # type: ignore[arg-type]
    with pytest.raises(RequestError, match='"SELECT 1" is no relation'):
        net.query("q", "SELECT 1")  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "meant"), [("Spark", 'Did you mean "spark"'), ("flink", "spark, local, virtual")])
def test_an_unknown_host_is_refused(given: Any, meant: str) -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=[]))
    with pytest.raises(RequestError, match=rf'there is no host "{given}"(.|\n)*{meant}'):
        net.run(on=given, until="end")


@pytest.mark.parametrize(("given", "meant"), [("chekpoint", 'Did you mean "checkpoint"'), ("ending", "on, until")])
def test_an_unknown_option_of_a_run_is_refused(given: str, meant: str) -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=[]))
    with pytest.raises(RequestError, match=rf'a run has no option "{given}"(.|\n)*{meant}'):
        net.run(on="local", until="end", **{given: "x"})


@pytest.mark.parametrize("lengths", [{"range": 60}, {"range": "1 minute", "slide": 30}])
def test_a_window_of_a_bare_number_is_refused(lengths: Any) -> None:
    a = mr.Network().stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match=r"(RANGE is a number without a unit|SLIDE of a RANGE window is a length)"):
        a.window(**lengths).agg(n="count(*)")


def test_an_unknown_source_is_refused_where_spark_does_not_run() -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source="parket", path="x"))
    with pytest.raises(
        RequestError, match=r'"a" comes from "parket"(.|\n)*"parquet"(.|\n)*csv, json, parquet, generate'
    ):
        net.run(on="local", until="end")


def test_what_can_be_no_source_is_refused_where_it_is_declared() -> None:
    net = mr.Network()
    with pytest.raises(RequestError, match='no source "5"'):
        net.stream("a", COLUMNS, time="ts", source=5)  # type: ignore[arg-type]
    net.stream("a", COLUMNS, time="ts", source=[])


# Order


def test_an_aggregate_is_ordered_by_the_start_of_its_windows() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1), ("y", 2, 2), ("x", 3, 65))])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)").order_by_time()
    assert counts.sql.endswith("ORDER BY window_start")
    starts = net.query("q", counts).run(on="local", until="end").results("q").column("window_start").to_pylist()
    assert [each.minute for each in starts] == [0, 0, 1]


def test_ordered_rows_can_be_filtered_selected_and_windowed() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", disorder="5 seconds", source=[rows(("x", 1, 4), ("y", 2, 3), ("z", 3, 1))])
    ordered = a.order_by_time().where("n > 1")
    net.query("filtered", ordered)
    net.query("selected", ordered.select("k", m="n * 10").where("m < 30"))
    net.query("windowed", ordered.window(range="1 minute").agg(n="count(*)"))
    handle = net.run(on="local", until="end")
    assert handle.results("filtered").column("n").to_pylist() == [3, 2]
    assert handle.results("selected").to_pylist() == [{"k": "y", "m": 20}]
    assert handle.results("windowed").column("n").to_pylist() == [2]


# Results


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_bare_select_is_printed_and_can_be_read(host: Any, capsys: pytest.CaptureFixture[str]) -> None:
    net = mr.Network()
    net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    handle = net.sql("SELECT k, n FROM a").run(on=host, until="end")
    assert handle.results("query_1").to_pylist() == [{"k": "x", "n": 1}]
    assert capsys.readouterr().out == "# query_1\nk\tn\nx\t1\n"


def test_the_console_shows_its_queries_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    net.query("shown", a.select("k"), sink="console").query("kept", a.select("n"))
    handle = net.run(on="local", until="end")
    assert capsys.readouterr().out == "# shown\nk\nx\n"
    assert handle.results("shown").to_pylist() == [{"k": "x"}]


def test_a_query_without_rows_has_its_columns() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)")
    found = net.query("q", counts).run(on="local", until="end").results("q")
    assert (found.num_rows, found.schema) == (0, counts.schema)


def test_results_in_files_are_said_to_be_there(tmp_path: Path) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    handle = net.query("q", a, sink="csv", path=tmp_path / "out").run(on="local", until="end")
    with pytest.raises(RequestError, match=f'results of query "q" are files in "{tmp_path / "out"}"'):
        handle.results("q")


# Feeds


@pytest.mark.parametrize(
    "item",
    [
        [{"ts": 1704067200.5}],
        [{"ts": "2024-01-01"}, {"ts": 1704067200.5}],
        pa.table({"ts": [None, 1704067200.5]}),
        pd.DataFrame({"ts": [1704067200.5]}),
    ],
)
def test_a_fraction_is_no_time(item: Any) -> None:
    net = mr.Network()
    net.query("q", net.stream("a", "ts TIMESTAMP", time="ts", source=[item]))
    with pytest.raises(RunError, match=r'fraction 1704067200.5 for the time "ts"(.|\n)*whole microseconds'):
        net.run(on="local", until="end")


TEXTS = ["2024-01-01 00:00:01", "2024-01-01 00:00:02.5"]


@pytest.mark.parametrize(
    "item",
    [
        [{"ts": text} for text in TEXTS],
        pa.table({"ts": TEXTS}),
        pa.table({"ts": pa.array(TEXTS, pa.large_string())}),
        pa.table({"ts": pa.array(TEXTS).dictionary_encode()}),
        pa.record_batch({"ts": TEXTS}),
        pd.DataFrame({"ts": TEXTS}),
    ],
)
def test_times_may_be_text_in_every_kind_of_feed(item: Any) -> None:
    net = mr.Network()
    net.query("q", net.stream("a", "ts TIMESTAMP", time="ts", source=[item]))
    found = net.run(on="local", until="end").results("q").column("ts").to_pylist()
    assert [(each.second, each.microsecond) for each in found] == [(1, 0), (2, 500_000)]


def test_text_that_is_no_time_is_refused_in_a_table_too() -> None:
    net = mr.Network()
    net.query("q", net.stream("a", "ts TIMESTAMP", time="ts", source=[pa.table({"ts": ["soon"]})]))
    with pytest.raises(RunError, match='"ts" is no time like'):
        net.run(on="local", until="end")


def test_a_used_up_iterator_is_refused_and_a_list_is_not() -> None:
    again, once = mr.Network(), mr.Network()
    batches = [rows(("x", 1, 1))]
    again.query("q", again.stream("a", COLUMNS, time="ts", source=batches))
    once.query("q", once.stream("a", COLUMNS, time="ts", source=iter(batches)))
    assert [again.run(on="local", until="end").results("q").num_rows for _ in range(2)] == [1, 1]
    with pytest.raises(RequestError, match="no host"):
        once.run(on="nowhere", until="end")  # type: ignore[arg-type]
    assert once.run(on="local", until="end").results("q").num_rows == 1
    with pytest.raises(
        RequestError, match=r'iterator that feeds stream "a" has been read by an earlier run(.|\n)*Pass a list'
    ):
        once.run(on="virtual", until="end")


# Windows of all kinds, aggregates of one's own, ranks


class Span:
    """The difference of the greatest and the least value."""

    def initialize(self) -> list[float]:
        return []

    def iterate(self, state: list[float], values: pa.Array) -> list[float]:
        return state + [each for each in values.to_pylist() if each is not None]

    def merge(self, state: list[float], other: list[float]) -> list[float]:
        return state + other

    def terminate(self, state: list[float]) -> float | None:
        return max(state) - min(state) if state else None


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"range": "1 minute"}, "[RANGE 1 minute SLIDE 1 minute]"),
        ({"range": "1 minute", "slide": "1 second", "by": "seen"}, "[RANGE 1 minute SLIDE 1 second WA seen]"),
        ({"range": "1 minute", "slide": "row"}, "[RANGE 1 minute]"),
        ({"rows": 10}, "[ROWS 10 SLIDE 10]"),
        ({"rows": 10, "slide": 5}, "[ROWS 10 SLIDE 5]"),
        ({"rows": 10, "slide": "row", "partition_by": "k"}, "[ROWS 10 PARTITION BY k]"),
        ({"session": "1 minute"}, "[SESSION 1 minute]"),
    ],
)
def test_windows_of_all_kinds_are_written_as_sql_writes_them(given: dict[str, Any], window: str) -> None:
    net = mr.Network()
    a = net.stream("a", f"{COLUMNS}, seen TIMESTAMP", time="ts", also={"seen": "1 minute"}, source=[])
    counts = a.window(**given).group_by("k").agg(n="count(*)")
    assert f"FROM a {window} GROUP BY k" in counts.sql
    if "partition_by" not in given:
        assert counts.order_by_time().schema.names == ["window_start", "window_end", "k", "n"]


def test_an_unlimited_window_carries_its_limit() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match=r"for ever(.|\n)*state_limit="):
        a.window(range="unlimited")
    counts = a.window(range="unlimited", state_limit=10).group_by("k").agg(n="count(*)")
    assert counts.where("n > 1").select("k", "n").sql.endswith("WITH (state_limit = 10)")
    net.query("q", counts.where("n > 1").select("k", "n"))
    assert net.bound().queries[0].options == {"state_limit": "10"}


def test_a_window_has_one_size_of_the_right_kind() -> None:
    a = mr.Network().stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(RequestError, match="one size"):
        a.window()
    with pytest.raises(RequestError, match="one size"):
        a.window(range="1 minute", rows=5)
    with pytest.raises(RequestError, match="a number of rows"):
        a.window(rows="5")  # type: ignore[arg-type]


def test_the_best_of_each_window_and_each_row_once() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    counts = a.window(range="1 minute").group_by("k").agg(n="count(*)")
    assert "QUALIFY row_number() OVER (PARTITION BY window_start, window_end ORDER BY n desc) <= 3" in (
        counts.top(3, by="n desc").sql
    )
    assert "rank() OVER (PARTITION BY window_start, window_end, k ORDER BY n)" in (
        counts.top(1, by="n", partition_by="k", ties=True).sql
    )
    assert counts.top(3, by="n desc").where("n > 1").schema.names == ["window_start", "window_end", "k", "n"]
    assert a.select("k", "ts").distinct().sql == "SELECT * FROM (SELECT DISTINCT k, ts FROM a)"
    with pytest.raises(mr.MillraceError, match="DISTINCT without a window"):
        a.select("k").distinct()


def test_promises_of_groups_and_late_rows_can_be_said_in_python() -> None:
    net = mr.Network()
    net.stream("a", COLUMNS, time="ts", punctuated_by="n > 1", per="k", late_into="late", source=[])
    assert "PUNCTUATED BY n > 1 PER (k)" in net.script
    assert net.late("late").select("k").schema.names == ["k"]
    with pytest.raises(RequestError, match="per needs punctuated_by"):
        net.stream("b", COLUMNS, time="ts", per="k", source=[])


def test_an_aggregate_is_a_class_that_can_be_imported() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    net.aggregate("span", Span, takes="DOUBLE", returns="DOUBLE")
    net.aggregate("other", "package.module:Other", takes=["STRING", "DOUBLE"], returns="STRING")
    assert f"LANGUAGE PYTHON AS '{__name__}:Span'" in net.script
    assert a.window(range="1 minute").agg(s="span(n)").schema.names == ["window_start", "window_end", "s"]

    class Local(Span):
        pass

    for wrong in (Local, lambda: None):
        with pytest.raises(RequestError, match="no class that other processes can import"):
            net.aggregate("wrong", wrong, takes="DOUBLE", returns="DOUBLE")  # type: ignore[arg-type]


@pytest.mark.parametrize("also", ["seen", {"seen": 5.5}, ["seen"]])
def test_further_times_without_their_disorder_are_refused(also: Any) -> None:
    with pytest.raises(RequestError, match=r"each with its disorder(.|\n)*also={'\w+': '30 minutes'}"):
        mr.Network().stream("a", f"{COLUMNS}, seen TIMESTAMP", time="ts", also=also, source=[])


@pytest.mark.parametrize("types", [{"takes": float}, {"takes": [float]}, {"takes": []}, {"returns": float}])
def test_types_that_are_not_those_of_sql_are_refused(types: Any) -> None:
    with pytest.raises(RequestError, match=rf'"{next(iter(types))}" is a type of SQL(.|\n)*DOUBLE'):
        mr.Network().aggregate("span", Span, **{"takes": "DOUBLE", "returns": "DOUBLE", **types})


def test_dates_and_times_may_be_fed_as_text() -> None:
    net = mr.Network()
    rows = [{"day": "2024-02-29", "ts": "2024-01-01 00:00:01"}, {"day": None, "ts": "2024-01-01 00:00:02"}]
    net.query("days", net.stream("s", "day DATE, ts TIMESTAMP", time="ts", source=[rows]).select("day"))
    found = net.run(on="local", until="end").wait().results("days")
    assert found.column("day").cast(pa.string()).to_pylist() == ["2024-02-29", None]


def test_quarantined_rows_are_read_by_their_name_and_explained(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,n,ts\na,1,2024-01-01\nb,x,2024-01-01\nc,3,\nd,y,2024-01-02\n")
    net = mr.Network()
    columns = "k STRING, n INT, ts TIMESTAMP"
    s = net.stream("s", columns, time="ts", quarantine_into="bad", source="csv", path=str(tmp_path / "a.csv"))
    net.query("q", s).query("why", net.read("bad"))
    run = net.run(on="local", until="end")
    assert [(row["raw"], row["line"]) for row in run.results("why").to_pylist()] == [
        ("b,x,2024-01-01", 3),
        ("d,y,2024-01-02", 5),
        ("c,3,", 4),
    ]
    source = run.metrics().sources["s"]
    assert (source.received, source.processed, source.quarantined) == (4, 1, 3)
    assert {reason: rows.count for reason, rows in source.aside.items()} == {
        'column "n" is not a valid INT': 2,
        'column "ts" is null': 1,
    }


def test_rows_from_python_without_a_time_are_quarantined_with_their_columns() -> None:
    net = mr.Network()
    rows = [[{"k": "a", "ts": 0}, {"k": "b", "ts": None}]]
    net.stream("s", "k STRING, ts TIMESTAMP", time="ts", quarantine_into="bad", source=rows)
    found = net.query("why", net.read("bad")).run(on="local", until="end").results("why").to_pylist()
    assert found == [{"raw": '{"k":"b","ts":null}', "file": None, "line": None, "reason": 'column "ts" is null'}]
