"""Late rows, accounting and enabling timestamps, whatever arrives and however it is cut."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.plan.nodes.query_network import QueryNetwork
from tests.property.cases import EPOCH, SECOND, Case, Row, cases, declared, queries, rows, schedules, values
from tests.property.test_answers import Driver
from tests.reference import evaluate, multiset

pytestmark = pytest.mark.slow

DISORDER = 3


@st.composite
def unruly(draw: st.DrawFn) -> Case:
    """One stream whose rows break the bound now and then, or have no time."""
    given_rows = draw(rows(DISORDER, 100, breach=6))
    given_rows = [{**row, "ts": None} if draw(st.integers(0, 9)) == 0 else row for row in given_rows]
    return Case(declared("s0", DISORDER) + draw(queries(["s0"])), {"s0": given_rows})


def sorted_out(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows on time and the late ones, by the definition: below the greatest time before less the disorder."""
    on_time, late, greatest = [], [], None
    for row in rows:
        if row["ts"] is None:
            continue
        if greatest is not None and row["ts"] < greatest - dt.timedelta(seconds=DISORDER):
            late.append(row)
        else:
            on_time.append(row)
        greatest = row["ts"] if greatest is None else max(greatest, row["ts"])
    return on_time, late


@given(data=st.data(), case=unruly())
def test_every_row_is_admitted_late_or_quarantined_whatever_the_batching(data: st.DataObject, case: Case) -> None:
    on_time, late = sorted_out(case.rows["s0"])
    for _ in range(2):
        driver = Driver(case.network, None)
        for stream, batch in data.draw(schedules(case.rows)):
            driver.push(stream, batch)
        driver.end()
        source = driver.executor.metrics().sources["s0"]
        without_time = sum(row["ts"] is None for row in case.rows["s0"])
        assert (source.received, source.late, source.quarantined) == (len(case.rows["s0"]), len(late), without_time)
        assert source.received == len(on_time) + source.late + source.quarantined
        assert multiset(driver.results) == multiset(evaluate(case.network.queries[0], {"s0": on_time}))


@st.composite
def delayed(draw: st.DrawFn) -> tuple[QueryNetwork, list[tuple[int, str, Row]]]:
    """Two streams whose rows arrive at most the declared skew after their time, and when each arrives."""
    skew = 2
    promises = [
        f"ETS {when} {rule} INTERVAL {skew} SECONDS"
        for when in ("ON DEMAND", "EVERY 1 SECOND")
        for rule in ("SKEW", "LULL")
    ]
    first, second = draw(st.sampled_from(promises)), draw(st.sampled_from(promises))
    sql = declared("s0", skew, first) + declared("s1", skew, second) + draw(queries(["s0", "s1"]))
    arrivals = []
    for stream, most in (("s0", 20), ("s1", 4)):
        for _ in range(draw(st.integers(0, most))):
            time = draw(st.integers(0, 80)) * SECOND // 2
            arrivals.append((time + draw(st.integers(0, skew * 4)) * SECOND // 4, stream, draw(values(time))))
    return Case(sql, {}).network, sorted(arrivals, key=lambda each: each[0])


@given(data=st.data(), case=delayed())
def test_enabling_timestamps_within_the_skew_lose_no_row(
    data: st.DataObject, case: tuple[QueryNetwork, list[tuple[int, str, Row]]]
) -> None:
    network, arrivals = case
    driver = Driver(network, None)
    for now, stream, row in arrivals:
        driver.push(stream, [row], now, silent=[each for each in ("s0", "s1") if each != stream])
        if data.draw(st.booleans()):
            driver.work(now, silent=["s0", "s1"])
    assert all(source.late == 0 for source in driver.executor.metrics().sources.values())
    driver.end()
    given_rows = {name: [row for _, stream, row in arrivals if stream == name] for name in ("s0", "s1")}
    assert multiset(driver.results) == multiset(evaluate(network.queries[0], given_rows))


def micros(row: Row) -> int:
    return int((row["ts"] - EPOCH) // dt.timedelta(microseconds=1))


@given(case=cases())
def test_bounded_rows_are_never_late(case: Case) -> None:
    driver = Driver(case.network, 1)
    for stream, given_rows in case.rows.items():
        driver.push(stream, given_rows)
    assert all(source.late == 0 for source in driver.executor.metrics().sources.values())
