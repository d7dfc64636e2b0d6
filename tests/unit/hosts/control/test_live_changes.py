"""Requests to a running network: whole or not at all, with answers that say what was done."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millrace.errors import NotYet, RequestError, RunError
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.replies import QueryStart, Reply, reply_text
from millrace.hosts.local.host import LocalRun
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import bind_changes, parse_network
from millrace.testing import table
from tests.background import running
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import Fed, row

STREAM = "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
SQL = STREAM + "CREATE QUERY keys AS SELECT k FROM s;"


def asked(sql: str) -> LiveChanges:
    return LiveChanges(parse_network(sql), sql, bind_changes)


@contextmanager
def at_work(sql: str, feed: Fed) -> Iterator[LocalRun]:
    changes = asked(sql)
    with running(LocalRun(changes.network, feeds={"s": feed}, changes=changes)) as run:
        yield run


def names(run: LocalRun) -> list[str]:
    return [query.name for query in run.changes.network.queries]


def test_several_statements_are_carried_out_in_order_and_answered_each() -> None:
    with at_work(SQL, Fed()) as run:
        text = "ADD QUERY a AS SELECT n FROM s WITH (strategy = 'bfs'); DROP QUERY keys; SHOW QUERIES"
        answers = run.changes.ask(text)
        assert [(each.did, each.started.query) for each in answers] == [
            ("added", "a"),
            ("dropped", "keys"),
            ("runs", "a"),
        ]
        assert names(run) == ["a"]


def test_of_a_request_that_fails_nothing_is_done() -> None:
    with at_work(SQL, Fed()) as run:
        before = set(run.executor.graph.nodes)
        for wrong in ("DROP QUERY nobody", "ADD QUERY b AS SELECT k FROM s WITH (strategy = 'dfs, merge = bfs')"):
            with pytest.raises(RequestError):
                run.changes.ask(f"ADD QUERY a AS SELECT n FROM s; {wrong}")
        assert names(run) == ["keys"]
        assert set(run.executor.graph.nodes) == before
        assert run.changes.history == []


def test_to_ask_which_queries_run_is_no_change() -> None:
    with at_work(SQL, Fed()) as run:
        (answer,) = run.changes.ask("SHOW QUERIES")
        assert answer == Reply("runs", QueryStart("keys", ("s",)))
        assert reply_text(answer.data()) == "keys runs since the beginning of its streams, reads s"
        assert run.changes.history == []


def test_a_query_replaced_in_one_request_goes_on_in_its_folder(tmp_path: Path) -> None:
    sql = f"{STREAM} CREATE SINK o TO csv OPTIONS (path '{tmp_path}'); CREATE QUERY q INTO o AS SELECT n FROM s;"
    feed = Fed()
    with at_work(sql, feed) as run:
        feed.tell(row(1, k="x", n=1))
        wait_for(lambda: run.report().results["q"] == 1)
        run.changes.ask("DROP QUERY q; ADD QUERY q INTO o AS SELECT n * 10 AS n FROM s")
        feed.tell(row(2, k="x", n=2))
        wait_for(lambda: run.report().results["q"] == 2)
    found = [each["n"] for path in sorted(tmp_path.glob("part-*")) for each in csv.DictReader(path.open())]
    assert found == ["1", "20"]


def test_queries_that_compute_the_same_share_their_operators() -> None:
    with at_work(STREAM + "CREATE QUERY a AS SELECT n FROM s WHERE n > 1;", Fed()) as run:
        before = len(run.executor.graph.operators())
        run.changes.ask("ADD QUERY b AS SELECT n FROM s WHERE n > 1")
        assert len(run.executor.graph.operators()) == before
        run.changes.ask("DROP QUERY a")
        assert len(run.executor.graph.operators()) == before
        assert [node.name for node in run.executor.graph.sinks()] == ["b"]


def test_break_nodes_come_and_go_with_the_option() -> None:
    with at_work(STREAM + "CREATE QUERY a AS SELECT n + 1 AS n FROM s WHERE n > 1;", Fed()) as run:
        run.changes.ask("ALTER QUERY a SET (breaks = 'filter')")
        assert any(arc.broken for node in run.executor.graph.operators() for arc in node.inputs)
        run.changes.ask("ALTER QUERY a SET (breaks = 'none')")
        assert not any(arc.broken for node in run.executor.graph.operators() for arc in node.inputs)


def test_a_running_stream_keeps_its_contract() -> None:
    with at_work(SQL, Fed()) as run:
        with pytest.raises(RequestError, match='stream "s" runs without max_future_skew'):
            run.changes.ask("ADD QUERY a AS SELECT n FROM s WITH (max_future_skew = '5 minutes')")
        assert names(run) == ["keys"]


def test_a_run_without_its_text_cannot_be_changed() -> None:
    run = LocalRun(parse_network(SQL), feeds={"s": []})
    with pytest.raises(NotYet, match="cannot be changed"):
        run.changes.carry_out("SHOW QUERIES", run)


def test_the_history_repeated_gives_the_network() -> None:
    with at_work(SQL, Fed()) as run:
        for text in (
            "ADD QUERY a AS SELECT n FROM s",
            "ALTER QUERY a SET (strategy = 'rr')",
            "CREATE SINK o TO csv OPTIONS (path 'o'); ADD QUERY b AS SELECT ts FROM s; DROP QUERY keys",
            "DROP QUERY a; ADD QUERY a AS SELECT k, n FROM s",
        ):
            run.changes.ask(text)
    again = asked(SQL)
    again.repeat(run.changes.history)
    assert again.network == run.changes.network
    assert again.history == run.changes.history


def test_a_scripted_change_of_a_virtual_run_is_exact() -> None:
    rows = table(
        """
        arrive | k | n | ts
        1s     | a | 1 | 00:00:01
        2s     | a | 2 | 00:00:02
        3s     | a | 3 | 00:00:03
        4s     | a | 4 | 00:00:04
        """,
        parse_network(SQL).streams()[0].schema,
    )
    changes = asked(SQL)
    run = VirtualRun(
        changes.network,
        feeds={"s": [rows.arriving()]},
        changes=changes,
        cost=Costs(row=100_000),
        scripted=[(2_050_000, "ADD QUERY late AS SELECT n FROM s"), (3_500_000, "DROP QUERY keys")],
    )
    run.run()
    found = [(each.now, each.query) for each in run.deliveries]
    assert [query for _, query in found].count("keys") == 3
    assert [row["n"] for each in run.memory["late"] for row in each.to_pylist()] == [3, 4]


def test_a_query_by_rows_or_by_another_column_starts_after_what_its_outlet_has_seen() -> None:
    declared = """CREATE STREAM s (n INT, began TIMESTAMP, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
        ALSO BY began DISORDER INTERVAL 9 SECONDS FROM iterable;"""
    counted = "SELECT sum(n) AS total FROM s [ROWS 2 SLIDE 2]"
    sql = declared + f"CREATE QUERY counted AS {counted};"
    rows = table(
        """
        arrive | n | began    | ts
        1s     | 1 | 00:00:01 | 00:00:01
        2s     | 2 | 00:00:02 | 00:00:02
        3s     | 3 | 00:00:02 | 00:00:03
        4s     | 4 | 00:00:03 | 00:00:04
        5s     | 5 | 00:00:01 | 00:00:05
        """,
        parse_network(sql).streams()[0].schema,
    )
    changes = asked(sql)
    later = f"""ADD QUERY same AS {counted};
        ADD QUERY begun AS SELECT sum(n) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA began]"""
    run = VirtualRun(changes.network, feeds={"s": [rows.arriving()]}, changes=changes, scripted=[(3_500_000, later)])
    run.run()
    found = {name: [row["total"] for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()}
    # The first keeps its own sums; its namesake has rows 4 and 5, the other the one row that began after 00:00:02.
    assert found == {"counted": [3, 7, 5], "same": [4, 5], "begun": [4]}


def test_what_fails_in_the_run_while_a_request_is_carried_out_is_no_refusal() -> None:
    changes = asked(SQL)
    run = LocalRun(changes.network, feeds={"s": Fed()}, changes=changes)

    def fail() -> None:
        raise RunError("an operator failed", hint="Mend it.")

    run.settle = fail  # type: ignore[method-assign]
    with pytest.raises(RunError, match="an operator failed"):
        changes.carry_out("SHOW QUERIES", run)
    with pytest.raises(RunError, match="an operator failed"):
        changes.check()
    run._control.close()
