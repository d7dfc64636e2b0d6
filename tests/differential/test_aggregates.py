"""The aggregates against Spark itself, all in one query over random rows; and the order of nested values."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millrace.testing import Host
from tests.differential.test_values import in_spark, same

ROWS = 400
START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
DECLARED = """
CREATE STREAM s (g STRING, i INT, w BIGINT, x DOUBLE, y DOUBLE, d DECIMAL(10, 2), t STRING, p BOOLEAN,
                 st STRUCT<a: INT, b: STRING>, l ARRAY<INT>, b BINARY, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM iterable;
"""
CALLS = """
count(i)|count(i, t)|count(DISTINCT i, t)|count(DISTINCT st)|count(DISTINCT l)|count_if(i > 3)|sum(i)|sum(d)|avg(d)
avg(i)|try_sum(i)|try_sum(w)|try_sum(d)|try_avg(w)|try_avg(d)|min(t)|max(d)|min(st)|max(st)|min(l)|max(l)
max_by(st.b, st)|min_by(size(l), l)|mode(t, true)|mode() WITHIN GROUP (ORDER BY i)
mode() WITHIN GROUP (ORDER BY i DESC)|bool_and(p)|every(p)|bool_or(p)|some(p)|corr(i, x)|corr(d, y)|covar_pop(i, x)
covar_samp(x, y)|regr_slope(y, x)|regr_intercept(y, i)|regr_r2(y, x)|regr_count(y, i)|regr_avgx(y, i)|regr_avgy(d, i)
regr_sxx(y, x)|regr_syy(y, d)|regr_sxy(y, x)|skewness(x)|kurtosis(x)|skewness(d)|kurtosis(i)|var_samp(x)|var_pop(i)
stddev(d)|stddev(DISTINCT i)|sum(DISTINCT d)|avg(DISTINCT i)|bit_and(i)|bit_or(w)|bit_xor(i)|bit_xor(DISTINCT i)
percentile(i, 0.3)|percentile(x, array(0.1, 0.5, 0.99))|percentile(d, 0.25)|median(x)|percentile(DISTINCT i, 0.4)
percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC)|percentile_cont(array(0.2, 0.7)) WITHIN GROUP (ORDER BY i)
percentile_disc(0.3) WITHIN GROUP (ORDER BY x)|percentile_disc(0.6) WITHIN GROUP (ORDER BY d DESC)
percentile_disc(array(0, 0.9)) WITHIN GROUP (ORDER BY i)
percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE i > 2)|collect_list(i)|array_agg(t)|collect_set(t)
collect_list(DISTINCT i)|collect_list(st)|collect_set(i) FILTER (WHERE p)|collect_list(i) FILTER (WHERE false)
listagg(t, ',') WITHIN GROUP (ORDER BY t)|listagg(DISTINCT t) WITHIN GROUP (ORDER BY t DESC)
string_agg(t, '-') WITHIN GROUP (ORDER BY x DESC, i, t)|listagg(i, ';') WITHIN GROUP (ORDER BY i)
listagg(t, ',') FILTER (WHERE false)|listagg(b, X'00') WITHIN GROUP (ORDER BY b)
listagg(t, NULL) WITHIN GROUP (ORDER BY l NULLS LAST, st, t)|histogram_numeric(d, 3) FILTER (WHERE false)
corr(x, x) FILTER (WHERE false)|corr(i, 1)|covar_samp(i, x) FILTER (WHERE false)|regr_r2(1, x)|regr_slope(x, 2)
skewness(7)
sum(make_dt_interval(i))|avg(make_dt_interval(i))|max(make_dt_interval(i))|CAST(sum(make_ym_interval(0, i)) AS STRING)
CAST(avg(make_ym_interval(0, i)) AS STRING)|count(DISTINCT make_ym_interval(0, i))
"""


def given() -> pa.RecordBatch:
    draw = random.Random(20240501)

    def some(make: Any) -> list[Any]:
        return [None if draw.random() < 0.15 else make() for _ in range(ROWS)]

    # A group of equal numbers, one of a single row, one of nulls; and a sum that 64 bits cannot hold.
    groups = [draw.choice("abc") for _ in range(ROWS - 6)] + ["equal"] * 4 + ["one", "none"]
    columns = {
        "g": pa.array(groups),
        "i": pa.array(some(lambda: draw.randint(-5, 12)), pa.int32()),
        "w": pa.array(some(lambda: draw.choice([7, 2**62, 2**63 - 1, -1])), pa.int64()),
        "x": pa.array(some(lambda: draw.choice([0.1, draw.gauss(50, 20), -3.5]))),
        "y": pa.array(some(lambda: draw.uniform(-1e3, 1e3))),
        "d": pa.array(some(lambda: Decimal(draw.randint(-9999, 9999)).scaleb(-2)), pa.decimal128(10, 2)),
        "t": pa.array(some(lambda: draw.choice(["", "a", "b", "ä", "zz"]))),
        "p": pa.array(some(lambda: draw.random() < 0.9)),
        "st": pa.array(some(lambda: {"a": draw.choice([1, 2, None]), "b": draw.choice(["x", "y", None])}), STRUCT),
        "l": pa.array(some(lambda: draw.choice([[], [1], [1, 2], [1, None], [None], [2]])), pa.list_(pa.int32())),
        "b": pa.array(some(lambda: draw.choice([b"", b"\x00", b"\xff", b"q"])), pa.binary()),
        "ts": pa.array([START + dt.timedelta(seconds=row) for row in range(ROWS)], pa.timestamp("us", "UTC")),
    }
    rows = pa.record_batch(columns)
    odd = {"equal": {"x": 0.1, "y": 0.7, "i": 4}, "none": dict.fromkeys(columns)}
    changed = [row | odd.get(row["g"], {}) | {"g": row["g"], "ts": row["ts"]} for row in rows.to_pylist()]
    return pa.RecordBatch.from_pylist(changed, schema=rows.schema)


@pytest.mark.spark
@pytest.mark.slow
def test_aggregates_have_the_values_of_spark_on_spark(spark_session: Any) -> None:
    rows, calls = given(), CALLS.strip().replace("\n", "|").split("|")
    chosen = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
    text = f"{DECLARED}CREATE QUERY q AS SELECT g, {chosen} FROM s [RANGE 1 DAY SLIDE 1 DAY] GROUP BY g;"
    ours = {row["g"]: row for row in Host("local").run(text, {"s": [pa.Table.from_batches([rows])]})["q"]}
    # Spark cannot plan listagg in an order beside DISTINCT of something else.
    kinds = [("DISTINCT" in call) + call.startswith("listagg(DISTINCT") for call in calls]
    parts = [[call for call, other in zip(calls, kinds, strict=True) if other == kind] for kind in range(3)]
    wrong = []
    for part in parts:
        for row in in_spark(spark_session, rows, [*part, "g"], "GROUP BY g").to_pylist():
            *values, group = row.values()
            for call, expected in zip(part, values, strict=True):
                found = ours[group][f"c{calls.index(call)}"]
                if call.startswith(("collect", "array_agg")):
                    found, expected = sorted(found, key=repr), sorted(expected, key=repr)
                if not alike(found, expected):
                    wrong.append((call, group, found, expected))
    assert wrong == []


def alike(found: Any, expected: Any) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        return same(found, expected) or abs(found - expected) < 1e-9 * max(abs(expected), 1)
    return same(found, expected)
