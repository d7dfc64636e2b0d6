"""Each golden query on every host, and once cut by restarts; `--rewrite` writes what the local host says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millrace.errors import MillraceError
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.endpoints import Connector
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.nodes.relational_nodes import OrderByTime
from millrace.plan.physical.stages import physical
from millrace.testing import Host, in_memory
from tests.golden.cases import Golden, Row, golden_queries, last_answers, lines, reference, rendered, together
from tests.reference import same

answered = pytest.mark.parametrize("golden", golden_queries(refused=False), ids=lambda each: each.name)
refused = pytest.mark.parametrize("golden", golden_queries(refused=True), ids=lambda each: each.name)


@pytest.fixture
def rewriting(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.mark.slow
@answered
def test_the_golden_rows_are_those_of_the_naive_reference(golden: Golden, rewriting: bool) -> None:
    found = last_answers(golden, Host("local").run(golden.sql, golden.inputs()))
    naive = reference(golden)
    assert list(found) == list(naive)
    for query, rows in found.items():
        assert same(rows, naive[query]), "the golden files are not rewritten from a wrong answer"
        # Rows of equal time come in any order, also where a query is ordered by time.
        moments = [row["ts"] for row in rows] if is_ordered(golden, query) else [None] * len(rows)
        text = "".join(f"{line}\n" for _, line in sorted(zip(map(str, moments), lines(rows), strict=True)))
        if rewriting:
            golden.rewrite(f"expected/{query}.txt", text)
        assert golden.text(f"expected/{query}.txt") == text


@pytest.mark.slow
@answered
def test_every_host_gives_the_golden_rows(golden: Golden, host: Host, request: pytest.FixtureRequest) -> None:
    if host.name == "spark":
        found = request.getfixturevalue("answers_on_spark")[golden.name]
    else:
        found = host.run(golden.sql, golden.inputs(pieces=3))
    found = last_answers(golden, found)
    assert rendered(found) == expected(golden)
    for query, rows in found.items():
        times = [row["ts"] for row in rows] if is_ordered(golden, query) else []
        assert times == sorted(times)
    if "by_length" in found:
        sequence = [(row["ts"], -row["len"], row["srcIP"]) for row in found["by_length"]]
        assert sequence == sorted(sequence) and len({ts for ts, *_ in sequence}) < len(sequence)


@pytest.fixture(scope="module")
def answers_on_spark(spark_session: Any) -> dict[str, dict[str, list[Row]]]:
    """All golden queries as one network, for starting a run on Spark takes longer than all of them do."""
    goldens = golden_queries(refused=False)
    rows = Host("spark", lambda: spark_session).run(*together(goldens))
    return {
        golden.name: {query.name: rows[f"{golden.name}_{query.name}"] for query in golden.network.queries}
        for golden in goldens
    }


@pytest.mark.slow
@answered
def test_restarts_do_not_change_the_golden_rows(golden: Golden, tmp_path: Path) -> None:
    pieces = golden.inputs(pieces=3)
    network = _on_files(golden.network, tmp_path)
    found: dict[str, list[Row]] = {query.name: [] for query in network.queries}
    for number, ending in enumerate(("available", "available", "end")):
        for stream, tables in pieces.items():
            for table in tables[number : number + 1]:
                pq.write_table(table, tmp_path / stream / f"{number}.parquet")
        run = LocalRun(network, RunOptions("local", ending, checkpoint=tmp_path / "checkpoint"))  # type: ignore[arg-type]
        run.run()
        for query, tables in run.memory.items():
            found[query] += [row for table in tables for row in table.to_pylist()]
    assert rendered(last_answers(golden, found)) == expected(golden)


@answered
def test_the_plan_is_the_golden_one(golden: Golden, rewriting: bool) -> None:
    plan = explain(physical(golden.network)) + "\n"
    if rewriting:
        golden.rewrite("plan.txt", plan)
    assert golden.text("plan.txt") == plan


@refused
def test_a_wrong_query_is_refused_with_the_golden_message(golden: Golden, rewriting: bool) -> None:
    with pytest.raises(MillraceError) as raised:
        physical(parse_network(golden.sql))
    assert raised.value.exit_code == 2
    assert raised.value.hint
    if rewriting:
        golden.rewrite("error.txt", f"{raised.value}\n")
    assert golden.text("error.txt") == f"{raised.value}\n"


def expected(golden: Golden) -> dict[str, list[str]]:
    queries = [query.name for query in golden.network.queries]
    return {query: sorted(golden.text(f"expected/{query}.txt").splitlines()) for query in queries}


def is_ordered(golden: Golden, query: str) -> bool:
    root = next(each.root for each in golden.network.queries if each.name == query)
    return any(isinstance(node, OrderByTime) for node in walk(root))


def _on_files(network: QueryNetwork, folder: Path) -> QueryNetwork:
    streams = {}
    for stream in network.streams():
        (folder / stream.name).mkdir()
        connector = Connector("parquet", {"path": str(folder / stream.name)})
        streams[stream.name] = replace(stream, connector=connector)
    return in_memory(network.with_streams(streams))
