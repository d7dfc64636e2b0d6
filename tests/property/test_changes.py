"""Queries come, change and go while rows pass: each answers for exactly the rows since its start, once."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.replies import Reply
from millrace.hosts.host_run import HostRun
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import ARRIVED
from millrace.language import bind_changes, parse_network
from millrace.plan.nodes.query_network import Query
from tests.property.cases import EPOCH, SECOND, Row, batch, declared, queries, rows, schedules
from tests.reference import evaluate, multiset

pytestmark = pytest.mark.slow

SETTINGS = [
    *(f"strategy = '{rule}'" for rule in ("dfs", "bfs", "rr", "batch:1", "batch:3")),
    *(f"breaks = '{where}'" for where in ("none", "chain")),
    "share = 3",
    "ets_arcs = 'off'",
]


class Noted(LiveChanges):
    """Changes that remember every query there has been."""

    def __init__(self, sql: str) -> None:
        super().__init__(parse_network(sql), sql, bind_changes)
        self.known: dict[str, Query] = {query.name: query for query in self.network.queries}

    def carry_out(self, text: str, run: HostRun) -> tuple[Reply, ...]:
        answers = super().carry_out(text, run)
        self.known.update({query.name: query for query in self.network.queries})
        return answers


@dataclass
class Plot:
    """A script, its rows, and the statements that the network may be changed by."""

    sql: str
    rows: dict[str, list[Row]]
    statements: list[str]


@st.composite
def plots(draw: st.DrawFn) -> Plot:
    """Two or three streams, one query at first, and further ones that come, change and go in turn."""
    names = [f"s{number}" for number in range(draw(st.integers(2, 3)))]
    sql, given = "", {}
    for name in names:
        disorder = draw(st.sampled_from([0, 2, 15]))
        sql += declared(name, disorder)
        given[name] = draw(rows(disorder, start=0, size=20))
    alive, statements = ["q0"], list[str]()
    for number in range(1, draw(st.integers(1, 6)) + 1):
        read = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        statements.append(draw(queries(read)).replace("CREATE QUERY q ", f"ADD QUERY q{number} "))
        alive.append(f"q{number}")
        if draw(st.booleans()):
            altered, setting = draw(st.sampled_from(alive)), draw(st.sampled_from(SETTINGS))
            statements.append(f"ALTER QUERY {altered} SET ({setting})")
        if draw(st.booleans()):
            statements.append(f"DROP QUERY {alive.pop(draw(st.integers(0, len(alive) - 1)))}")
    return Plot(sql + draw(queries(names)).replace("QUERY q ", "QUERY q0 "), given, statements)


def since(query: Query, given: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows from a query's start on."""
    return {name: [row for row in each if micros(row) >= query.since] for name, each in given.items()}


def micros(row: Row) -> int:
    return int((row["ts"] - EPOCH) // dt.timedelta(microseconds=1))


def check(changes: Noted, plot: Plot, found: dict[str, list[Row]]) -> None:
    running = {query.name for query in changes.network.queries}
    for name, query in changes.known.items():
        answer, given = multiset(evaluate(query, since(query, plot.rows))), multiset(found[name])
        if name in running:
            assert given == answer, name
        else:
            assert not Counter(given) - Counter(answer), "what a query answered before it was dropped is right"


@given(data=st.data(), plot=plots(), rows_per_step=st.sampled_from([None, 1, 3]))
def test_a_virtual_run_under_load(data: st.DataObject, plot: Plot, rows_per_step: int | None) -> None:
    changes = Noted(plot.sql)
    moments = sorted(data.draw(st.integers(0, 40 * SECOND)) for _ in plot.statements)
    run = VirtualRun(
        changes.network,
        feeds={name: [arriving(each)] if each else [] for name, each in plot.rows.items()},
        cost=Costs(row=data.draw(st.sampled_from([0, SECOND // 10])), punctuation=1000, ets=1),
        rows_per_step=rows_per_step,
        changes=changes,
        scripted=list(zip(moments, plot.statements, strict=True)),
    )
    run.run()
    check(
        changes,
        plot,
        {name: [row for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()},
    )


def arriving(given: Sequence[Row]) -> pa.Table:
    """Rows that arrive when their time has come, or that of one before them."""
    arrivals, latest = [], 0
    for row in given:
        latest = max(latest, micros(row))
        arrivals.append(latest)
    return pa.Table.from_batches([batch(given)]).append_column(ARRIVED, pa.array(arrivals, pa.int64()))


@given(data=st.data(), plot=plots())
def test_a_local_run_with_restarts(data: st.DataObject, plot: Plot) -> None:
    feeds: dict[str, list[Any]] = {name: [] for name in plot.rows}
    for stream, each in data.draw(schedules(plot.rows)):
        feeds[stream].append(pa.Table.from_batches([batch(each)]))
    found, known = defaultdict[str, list[Row]](list), dict[str, Query]()
    statements = list(plot.statements)
    with TemporaryDirectory() as folder:
        run = opened(plot, feeds, folder)
        while run._turn() or statements:
            action = data.draw(st.sampled_from(["change", "change", "read", "restart"]))
            if action == "change" and statements:
                run.changes.carry_out(statements.pop(0), run)
            elif action == "restart":
                run._commit()
                run._control.close()
                gather(run, found, known)
                run = opened(plot, feeds, folder)
        run._end()
        run._control.close()
        gather(run, found, known)
    assert isinstance(run.changes, Noted)
    run.changes.known = known
    check(run.changes, plot, found)


def opened(plot: Plot, feeds: dict[str, list[Any]], folder: str) -> LocalRun:
    changes = Noted(plot.sql)
    return LocalRun(parse_network(plot.sql), RunOptions("local", checkpoint=Path(folder)), feeds=feeds, changes=changes)


def gather(run: LocalRun, found: dict[str, list[Row]], known: dict[str, Query]) -> None:
    assert isinstance(run.changes, Noted)
    known.update(run.changes.known)
    known.update({query.name: query for query in run.changes.network.queries})
    for name, tables in run.memory.items():
        found[name] += [row for each in tables for row in each.to_pylist()]
