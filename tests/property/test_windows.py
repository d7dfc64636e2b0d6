"""Every kind of window with every aggregate gives what the naive reference says, however its rows come."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.testing import Host
from tests.property.cases import Case, batch, declared, rows, schedules
from tests.property.test_answers import Driver
from tests.property.user_aggregates import DECLARED
from tests.property.windows import AGGREGATES, FURTHER, KINDS, instants, window_cases
from tests.reference import evaluate, same

pytestmark = pytest.mark.slow

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@given(data=st.data(), rows_per_step=st.sampled_from([None, 1, 3]))
def test_batching_and_restarts_do_not_change_the_answer(
    kind: str, data: st.DataObject, rows_per_step: int | None
) -> None:
    case = data.draw(window_cases(kind))
    check(case, driven(data, case, rows_per_step))


def driven(data: st.DataObject, case: Case, rows_per_step: int | None = None) -> list[dict[str, object]]:
    """The results of a run that is cut and restarted anywhere."""
    driver = Driver(case.network, rows_per_step)
    for stream, some in data.draw(schedules(case.rows)):
        driver.push(stream, some)
        if data.draw(st.integers(0, 3)) == 0:
            driver.restart()
    driver.end()
    return driver.results


def check(case: Case, found: list[dict[str, object]]) -> None:
    expected = evaluate(case.network.queries[0], case.rows)
    assert same(found, expected), f"{case.sql}\nfound    {found}\nexpected {expected}"


@every_kind
@given(data=st.data())
def test_the_local_and_the_virtual_host_give_the_answer(kind: str, data: st.DataObject) -> None:
    case = data.draw(window_cases(kind))
    inputs: dict[str, list[pa.Table]] = {stream: [] for stream in case.rows}
    for stream, some in data.draw(schedules(case.rows)):
        inputs[stream].append(pa.Table.from_batches([batch(some)]))
    for host in (Host("local"), Host("virtual")):
        check(case, host.run(case.sql, inputs)["q"])


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 7 SECONDS SLIDE 3 SECONDS]",
        "[ROWS 5 SLIDE 2]",
        "[ROWS 3]",
        "[ROWS 3 PARTITION BY k]",
        "[ROWS 3 SLIDE 2 PARTITION BY k]",
        "[RANGE 5 SECONDS]",
        "[SESSION 3 SECONDS]",
    ],
)
@settings(max_examples=settings.default.max_examples // 3)  # a query of thirty aggregates takes long to plan
@given(data=st.data())
def test_all_aggregates_side_by_side(window: str, data: st.DataObject) -> None:
    chosen = ", ".join(f"{each} AS a{number}" for number, each in enumerate(AGGREGATES))
    sql = f"{declared('s0', 2)}CREATE QUERY q AS SELECT k, {chosen} FROM s0 {window} GROUP BY k;"
    case = Case(sql, {"s0": data.draw(rows(2, -3))})
    check(case, driven(data, case))


@pytest.mark.parametrize("window", ["[RANGE 7 SECONDS SLIDE 3 SECONDS]", "[ROWS 3]", "[SESSION 3 SECONDS]"])
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_further_aggregates_side_by_side(window: str, data: st.DataObject) -> None:
    chosen = ", ".join(f"{each} AS a{number}" for number, each in enumerate(FURTHER))
    sql = f"{declared('s0', 2)}CREATE QUERY q AS SELECT j, {chosen} FROM s0 {window} GROUP BY j;"
    case = Case(sql, {"s0": data.draw(rows(2, -3))})
    check(case, driven(data, case))


@given(data=st.data(), window=st.sampled_from(["[RANGE 9 SECONDS SLIDE 4 SECONDS]", "[SESSION 3 SECONDS]", "[ROWS 4]"]))
def test_an_aggregate_without_merge_gets_its_values_in_order_of_time(data: st.DataObject, window: str) -> None:
    query = f"SELECT k, steps(v) AS a, weighed(v) AS b FROM s0 {window} WHERE v IS NOT NULL GROUP BY k"
    given_rows = instants(data.draw(rows(2, -3)))
    case = Case(f"{DECLARED}{declared('s0', 3)}CREATE QUERY q AS {query};", {"s0": given_rows})
    check(case, driven(data, case))


@given(data=st.data(), kinds=st.permutations(list(KINDS)))
def test_queries_of_several_kinds_over_one_stream_do_not_disturb_each_other(
    data: st.DataObject, kinds: list[str]
) -> None:
    given_rows = {"s0": data.draw(rows(2, -3))}
    sql = DECLARED + declared("s0", 2)
    for number, kind in enumerate(kinds[:3]):
        sql += f"CREATE QUERY q{number} AS {data.draw(texts(kind))};\n"
    case = Case(sql, given_rows)
    inputs = {"s0": [pa.Table.from_batches([batch(some)]) for _, some in data.draw(schedules(given_rows))]}
    found = Host("local").run(sql, inputs)
    for query in case.network.queries:
        expected = evaluate(query, given_rows)
        assert same(found[query.name], expected), f"{sql}\n{found[query.name]}\nexpected {expected}"


@st.composite
def texts(draw: st.DrawFn, kind: str) -> str:
    return KINDS[kind](draw, "s0")
