"""One stream read by several progressing attributes, with promises for single groups, and by its late rows."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.testing import Host
from tests.property.cases import EPOCH, Case, Row, batch, rows, schedules, values
from tests.property.test_windows import check, driven
from tests.property.user_aggregates import DECLARED
from tests.property.windows import aggregates, fixed_window, instants, options
from tests.reference import evaluate, same

pytestmark = pytest.mark.slow

COLUMNS = "k STRING, j INT, v BIGINT, x DOUBLE, ts TIMESTAMP, began TIMESTAMP"
TWO_ATTRIBUTES = f"""
CREATE STREAM s0 ({COLUMNS}) TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS
  ALSO BY began DISORDER INTERVAL 6 SECONDS LATE INTO overdue FROM iterable;
"""
PER_GROUP = (
    f"CREATE STREAM s0 ({COLUMNS}) TIMESTAMP BY ts PUNCTUATED BY v > 5 PER (k) LATE INTO overdue FROM iterable;\n"
)


@st.composite
def lasting(draw: st.DrawFn) -> list[Row]:
    """Rows with two times, either of which may break its bound."""
    found = draw(rows(3, 50, breach=draw(st.sampled_from([0, 3]))))
    lengths = st.sampled_from([0, 1, 1, 2, 4, 9])
    return [{**row, "began": row["ts"] - dt.timedelta(seconds=draw(lengths))} for row in found]


@st.composite
def reading(draw: st.DrawFn) -> str:
    """A query over either attribute, over the order of entry, or over what came too late."""
    attribute = draw(st.sampled_from(["ts", "began"]))
    window = draw(st.sampled_from([fixed_window(draw).replace("WA ts", f"WA {attribute}"), "[ROWS 3 SLIDE 2]"]))
    late = "SELECT k, v, ts, began FROM overdue"
    return draw(st.sampled_from([f"SELECT k, {draw(aggregates())} FROM s0 {window} GROUP BY k", late]))


@given(data=st.data(), given_rows=lasting())
def test_any_attribute_of_a_stream_can_be_read_whatever_the_batching(
    data: st.DataObject, given_rows: list[Row]
) -> None:
    case = Case(f"{TWO_ATTRIBUTES}CREATE QUERY q AS {data.draw(reading())};", {"s0": given_rows})
    check(case, driven(data, case))


@given(data=st.data(), given_rows=lasting())
def test_queries_over_different_attributes_run_side_by_side(data: st.DataObject, given_rows: list[Row]) -> None:
    sql = TWO_ATTRIBUTES + "".join(f"CREATE QUERY q{number} AS {data.draw(reading())};\n" for number in range(3))
    check_hosts(data, sql, given_rows)


def check_hosts(data: st.DataObject, sql: str, given_rows: list[Row]) -> None:
    inputs = {"s0": [pa.Table.from_batches([batch(some)]) for _, some in data.draw(schedules({"s0": given_rows}))]}
    case = Case(sql, {"s0": given_rows})
    for host in (Host("local"), Host("virtual")):
        found = host.run(sql, inputs)
        for query in case.network.queries:
            expected = evaluate(query, case.rows)
            assert same(found[query.name], expected), f"{sql}\nfound    {found[query.name]}\nexpected {expected}"


@st.composite
def promising(draw: st.DrawFn) -> list[Row]:
    """Rows of groups that go their own ways; every group is known before any promises, so that none is overtaken."""
    found = [draw(values(-100_000_000)) | {"k": key, "v": 0} for key in (None, "a", "b", "ä", "")]
    reached = dict.fromkeys((None, "a", "b", "ä", ""), 0)
    for _ in range(draw(st.integers(0, 25))):
        row = draw(values(0))
        reached[row["k"]] += draw(st.sampled_from([-2, 0, 1, 5, 10, 60]))
        found.append({**row, "ts": EPOCH + dt.timedelta(seconds=reached[row["k"]])})
    return [{**row, "began": row["ts"]} for row in instants(found)]


@st.composite
def over_groups(draw: st.DrawFn) -> str:
    """A query that closes each group by its own promises, or one that waits for the slowest."""
    chosen, how = draw(aggregates()), options(draw, two_levels=True)
    return draw(
        st.sampled_from(
            [
                f"SELECT k, {chosen} FROM s0 {fixed_window(draw)} GROUP BY k {how}",
                f"SELECT k, j, {chosen} FROM s0 {fixed_window(draw)} WHERE x IS NOT NULL GROUP BY k, j {how}",
                f"SELECT k, date_trunc('minute', ts) AS m, {chosen} FROM s0 GROUP BY k, date_trunc('minute', ts) {how}",
                f"SELECT k, spread(v) AS a FROM s0 {fixed_window(draw)} GROUP BY k",
                f"SELECT k, steps(j) AS a FROM s0 {fixed_window(draw)} WHERE v = 1 GROUP BY k",
                f"SELECT j, {chosen} FROM s0 {fixed_window(draw)} GROUP BY j {how}",
                f"SELECT {chosen} FROM s0 [SESSION 4 SECONDS]",
                f"SELECT k, {chosen} FROM s0 [RANGE 5 SECONDS] GROUP BY k",
                "SELECT k, v, ts FROM overdue",
                "SELECT k, v, ts FROM s0",
            ]
        )
    )


@given(data=st.data(), given_rows=promising(), rows_per_step=st.sampled_from([None, 1]))
def test_promises_for_single_groups_lose_nothing(
    data: st.DataObject, given_rows: list[Row], rows_per_step: int | None
) -> None:
    case = Case(f"{DECLARED}{PER_GROUP}CREATE QUERY q AS {data.draw(over_groups())};", {"s0": given_rows})
    check(case, driven(data, case, rows_per_step))


@given(data=st.data(), given_rows=promising())
def test_group_wise_and_linear_consumers_run_side_by_side(data: st.DataObject, given_rows: list[Row]) -> None:
    sql = (
        DECLARED
        + PER_GROUP
        + "".join(f"CREATE QUERY q{number} AS {data.draw(over_groups())};\n" for number in range(3))
    )
    check_hosts(data, sql, given_rows)
