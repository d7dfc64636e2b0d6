"""Every kind of join gives what nested loops give, however its rows come; and never says more than is known."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.testing import Host
from tests.property.cases import SCHEMA, Case, Row, batch, schedules
from tests.property.joins import BOTH, KINDS, METHODS, PLAIN, condition, declared, ending, in_order, join_cases
from tests.property.test_answers import Driver, check_order
from tests.property.test_levels import run
from tests.property.test_windows import driven
from tests.reference import evaluate, multiset, same

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB reads the same text as we do; runs wherever the dev extra is installed"
)

pytestmark = pytest.mark.slow

every_kind = pytest.mark.parametrize("kind", KINDS)
# There are many kinds, and a few joins of each say much: the rows of a case are many, too.
some = settings(max_examples=settings.default.max_examples // 2)


def check(case: Case, found: list[Row]) -> None:
    expected = evaluate(case.network.queries[0], case.rows)
    assert same(found, expected), f"{case.sql}\nfound    {found}\nexpected {expected}"
    check_order(case, found)


@every_kind
@some
@given(data=st.data(), rows_per_step=st.sampled_from([None, 1, 3]))
def test_batching_interleaving_and_restarts_do_not_change_what_is_joined(
    kind: str, data: st.DataObject, rows_per_step: int | None
) -> None:
    case = data.draw(join_cases(KINDS[kind]))
    check(case, driven(data, case, rows_per_step))


@every_kind
@some
@given(data=st.data())
def test_the_local_and_the_virtual_host_join_alike(kind: str, data: st.DataObject) -> None:
    case = data.draw(join_cases(KINDS[kind]))
    inputs: dict[str, list[pa.Table]] = {stream: [] for stream in case.rows}
    for stream, some in data.draw(schedules(case.rows)):
        inputs[stream].append(pa.Table.from_batches([batch(some)]))
    for host in (Host("local"), Host("virtual")):
        check(case, host.run(case.sql, inputs)["q"])


@every_kind
@some
@given(data=st.data())
def test_joins_are_the_same_across_levels_buckets_and_replays(kind: str, data: st.DataObject) -> None:
    case = data.draw(join_cases(KINDS[kind]))
    with tempfile.TemporaryDirectory() as folder:
        levels = run(data, case, Path(folder))
    check(case, levels.results)


@pytest.mark.parametrize("kind", PLAIN)
@given(data=st.data())
def test_a_join_means_what_it_means_to_a_database(kind: str, data: st.DataObject) -> None:
    case = data.draw(join_cases(PLAIN[kind]))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for stream, given_rows in case.rows.items():
        connection.register(stream, pa.Table.from_batches([batch(given_rows)], SCHEMA))
    text = case.sql.split("CREATE QUERY q AS ")[1]
    expected = connection.sql(text.removesuffix(";")).to_arrow_table().to_pylist()
    assert same(evaluate(case.network.queries[0], case.rows), expected), case.sql


@given(data=st.data())
def test_every_method_joins_in_order_of_time(data: st.DataObject) -> None:
    case = data.draw(join_cases(in_order))
    for sql in [f"{case.sql.removesuffix(';')} WITH (join = '{method}');" for method in METHODS]:
        check(Case(sql, case.rows), driven(data, Case(sql, case.rows), data.draw(st.sampled_from([None, 1]))))


@given(data=st.data())
def test_an_inner_join_gives_each_pair_as_soon_as_both_rows_are_there(data: st.DataObject) -> None:
    case = data.draw(join_cases(lambda draw: f"SELECT {BOTH} FROM s0 AS x JOIN s1 AS y ON {condition(draw)}"))
    driver, so_far = Driver(case.network, None), {stream: list[Row]() for stream in case.rows}
    for stream, some in data.draw(schedules(case.rows)):
        driver.push(stream, some)
        so_far[stream] += some
        assert multiset(driver.results) == multiset(evaluate(case.network.queries[0], so_far))


@given(data=st.data(), length=st.sampled_from([0, 2, 7]), kind=st.sampled_from(["LEFT", "RIGHT", "FULL"]))
def test_an_unmatched_row_leaves_when_it_is_proven_and_not_before(data: st.DataObject, length: int, kind: str) -> None:
    disorder = {"s0": data.draw(st.sampled_from([0, 3])), "s1": data.draw(st.sampled_from([0, 3]))}
    case = Case(
        "".join(declared(stream, each) for stream, each in disorder.items())
        + "CREATE QUERY q AS SELECT x.v AS s0, x.ts AS xts, y.v AS s1, y.ts AS yts, coalesce(x.k, y.k) AS k"
        f" FROM s0 AS x {kind} JOIN s1 AS y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL {length} SECONDS;",
        {stream: numbered(data.draw(ending(each))) for stream, each in disorder.items()},
    )
    alone = [row for row in evaluate(case.network.queries[0], case.rows) if None in (row["s0"], row["s1"])]
    driver, so_far = Driver(case.network, None), {stream: list[Row]() for stream in case.rows}
    for stream, some in data.draw(schedules(case.rows)):
        driver.push(stream, some)
        so_far[stream] += some
        bounds = {name: bound(each, disorder[name]) for name, each in so_far.items()}
        proven = [row for row in alone if has_come(row, so_far) and is_proven(row, bounds, length)]
        assert multiset(row for row in driver.results if None in (row["s0"], row["s1"])) == multiset(proven), case.sql


def numbered(given_rows: list[Row]) -> list[Row]:
    return [{**row, "v": number} for number, row in enumerate(given_rows)]


def bound(given_rows: list[Row], disorder: int) -> dt.datetime | None:
    """What a stream has promised so far: no later row is before it."""
    return max(row["ts"] for row in given_rows) - dt.timedelta(seconds=disorder) if given_rows else None


def has_come(row: Row, so_far: dict[str, list[Row]]) -> bool:
    return any(row[stream] is not None and row[stream] < len(given_rows) for stream, given_rows in so_far.items())


def is_proven(row: Row, bounds: dict[str, dt.datetime | None], length: int) -> bool:
    """Whether no later row of the other stream can match this one: an x waits for `length` seconds, a y for none.

    That nothing matches a row without a key is known at once.
    """
    if row["k"] is None:
        return True
    if row["s0"] is not None:
        other, last = bounds["s1"], row["xts"] + dt.timedelta(seconds=length)
    else:
        other, last = bounds["s0"], row["yts"]
    return other is not None and other > last
