"""Update streams and update queries in Python."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from millrace import Network
from millrace.api.relations import Relation
from millrace.errors import QueryError, RequestError

SECOND = 1_000_000
ROWS = [{"k": "ab"[number % 2], "v": number, "ts": number * SECOND} for number in range(20)]


def streams(**options: Any) -> tuple[Network, Relation, Relation]:
    net = Network()
    columns = "k STRING, v BIGINT, ts TIMESTAMP"
    first = net.stream("a", columns, time="ts", update_key="k", source=[ROWS], **options)
    return net, first, net.stream("b", columns, time="ts", update_key=["k"], source=[ROWS])


def last(net: Network, query: str) -> dict[str, dict[str, Any]]:
    rows = net.run(on="local", until="end").results(query).to_pylist()
    return {row["k"]: row for row in rows}


def test_a_stream_is_declared_as_sql_declares_it() -> None:
    net, *_ = streams(queue="linecutting", settings={"budget": "9 rows"})
    net.stream("one", "v INT, ts TIMESTAMP", time="ts", update_key=())
    assert "UPDATE KEY (k)" in net.script and "UPDATE KEY ()" in net.script
    assert "WITH (queue = 'linecutting', budget = '9 rows')" in net.script


def test_an_update_query_gives_the_last_value_of_each_key() -> None:
    net, a, _ = streams()
    net.query("q", a.where("v < 15").select("k", "v"), settings={"queue": "update_fifo"})
    assert last(net, "q") == {"a": {"k": "a", "v": 14}, "b": {"k": "b", "v": 13}}


def test_updates_are_joined_without_a_window() -> None:
    net, a, b = streams()
    net.query("q", a.join(b, on="k").select("k", "a.v AS x", "b.v AS y"))
    assert last(net, "q") == {"a": {"k": "a", "x": 18, "y": 18}, "b": {"k": "b", "x": 19, "y": 19}}


def test_updates_are_composed_freely() -> None:
    net, a, b = streams()
    c = net.stream("c", "k STRING, v BIGINT, ts TIMESTAMP", time="ts", update_key="k", source=[ROWS])
    plain = net.stream("p", "k STRING, v BIGINT, ts TIMESTAMP", time="ts", source=[ROWS])
    pairs = a.join(b, on="k")
    counts, others = (
        each.window(range="10 seconds", slide="10 seconds").group_by("k").agg(n="count(*)", window_end="window_end")
        for each in (a, b)
    )
    net.query("three", pairs.join(c, on="a.k = c.k").select("c.k", total="a.v + b.v + c.v"))
    net.query("over", pairs.select("k", d="a.v + b.v").window(range="4 s", slide="4 s").group_by("k").agg(s="sum(d)"))
    net.query(
        "windows",
        counts.join(others, on=["k", "window_end"], names=("x", "y")).select("k", "window_end", n="x.n", m="y.n"),
    )
    summed = plain.window(range="10 seconds", slide="10 seconds").group_by("k").agg(s="sum(v)")
    net.query("counted", summed, settings={"queue": "inplace"})
    handle = net.run(on="local", until="end")
    found = {name: {row["k"]: row for row in handle.latest(name).to_pylist()} for name in handle.queries}
    assert {key: row["total"] for key, row in found["three"].items()} == {"a": 54, "b": 57}
    # The last window is that from 16 to 20.
    assert {key: row["s"] for key, row in found["over"].items()} == {"a": 68, "b": 72}
    assert {key: (row["n"], row["m"]) for key, row in found["windows"].items()} == {"a": (5, 5), "b": (5, 5)}
    assert {key: row["s"] for key, row in found["counted"].items()} == {"a": 70, "b": 75}


def test_what_a_relation_is_a_part_of_decides_whether_it_has_update_semantics() -> None:
    net, a, b = streams()
    without_key = a.select("v", "ts")
    with pytest.raises(QueryError, match="is not selected"):
        net.query("q", without_key)
    net.query("q", without_key, settings={"queue": "append"})
    with pytest.raises(QueryError, match="for ever"):
        net.query("r", a.join(b, on="k"), settings={"queue": "append"})
    assert net.run(on="local", until="end").results("q").num_rows == len(ROWS)


def test_a_union_may_name_its_source_of_truth() -> None:
    _, a, b = streams()
    assert a.union(b, truth=b).sql == "SELECT * FROM a UNION b TRUTH b"
    with pytest.raises(RequestError, match="truth works only in a union of streams"):
        a.where("v > 3").union(b, truth=b)


def test_access_is_by_condition_on_the_key() -> None:
    net, a, _ = streams()
    net.query("q", a.select("k", "v"), access={"k = 'a'": timedelta(minutes=1), None: "1 hour"})
    net.query("r", a.select("k", "v"), access="5 seconds")
    assert "ACCESS EVERY INTERVAL 1 minutes WHEN k = 'a', EVERY INTERVAL 1 hour AS" in net.script
    assert [each.every for each in net.bound().queries[1].access] == [5 * SECOND]


@pytest.mark.parametrize(
    ("give", "fact"),
    [
        (lambda net, a: net.stream("z", "k INT", latent=True, update_key=3), "update_key takes columns"),
        (lambda net, a: net.stream("z", "k INT", latent=True, update_key=[3]), "update_key takes columns"),
        (lambda net, a: net.stream("z", "k INT", latent=True, settings="lazy"), "settings are names and values"),
        (lambda net, a: net.query("q", a, access={}), "access says how often"),
        (lambda net, a: net.query("q", a, access={3: "1 hour"}), "access says how often"),
        (lambda net, a: net.query("q", a, access="often"), "access is a length of time"),
    ],
)
def test_what_is_no_clause_is_refused(give: Any, fact: str) -> None:
    net, a, _ = streams()
    with pytest.raises(RequestError, match=fact) as raised:
        give(net, a)
    assert raised.value.hint


def test_the_queue_of_a_running_query_is_altered() -> None:
    altered = Event()

    def rows() -> Iterator[list[dict[str, Any]]]:
        yield ROWS[:10]
        for number in range(10, 20):
            # A source that waited would keep the run from following.
            while number == 10 and not altered.wait(0.01):
                yield []
            yield [ROWS[number]]

    net = Network()
    a = net.stream("a", "k STRING, v BIGINT, ts TIMESTAMP", time="ts", update_key="k", source=rows())
    net.query("q", a.select("k", "v"))
    handle = net.run(on="local", until="end", background=True)
    handle.alter("q", queue="linecutting", budget="5 rows")
    with pytest.raises(RequestError, match="lays its memory out"):
        handle.alter("q", baseline="naive_memory")
    altered.set()
    handle.wait()
    assert handle.queries["q"].options == {"queue": "linecutting", "budget": "5 rows"}
    found = {row["k"]: row["v"] for row in handle.results("q").to_pylist()}
    assert found == {"a": 18, "b": 19}
