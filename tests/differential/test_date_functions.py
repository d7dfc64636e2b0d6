"""Functions of times against DuckDB, over times before 1970, leap days and the ends of years."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.differential.duckdb_expressions import oracle_of, ours_over, theirs_over

SECOND = 1_000_000
MICROS = [
    None, 0, -1, 1, -SECOND, 1_709_208_615_123_456, 1_735_689_599_999_999, -2_203_890_177_000_000,
    946_684_800 * SECOND, 2_147_483_648 * SECOND, 1_436_979_909_120_000, -86_400 * SECOND, 1_735_516_800 * SECOND,
]  # fmt: skip
ROWS = pa.table({"id": range(len(MICROS)), "ts": pa.array(MICROS, pa.timestamp("us", tz="UTC"))})
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")

PAIRS = [
    *((f"date_trunc('{unit}', ts)", f"date_trunc('{unit}', ts::TIMESTAMP)") for unit in UNITS),
    *((f"extract({field} FROM ts)",) * 2 for field in ("year", "quarter", "month", "week", "day", "hour", "doy")),
    ("date_format(ts, 'yyyy-MM-dd HH:mm:ss')", "strftime(ts, '%Y-%m-%d %H:%M:%S')"),
    ("date_format(ts, 'yyyy-MM-dd')", "strftime(ts, '%Y-%m-%d')"),
    ("date_format(ts, 'hh:mm:ss.SSS a')", "strftime(ts, '%I:%M:%S.%g %p')"),
    ("date_format(ts, 'E EEEE MMM MMMM SSSSSS DDD yy')", "strftime(ts, '%a %A %b %B %f %j %y')"),
    ("date_format(ts, 'd/M H:m:s')", "strftime(ts, '%-d/%-m %-H:%-M:%-S')"),
    ("to_char(ts, 'YYYY-MM-DD HH24:MI:SS')", "strftime(ts, '%Y-%m-%d %H:%M:%S')"),
    ("to_date(ts)", "ts::DATE"),
    ("CAST(ts AS DATE)", "ts::DATE"),
    ("unix_timestamp(ts)", "floor(epoch_us(ts) / 1e6)"),
    ("unix_millis(ts)", "floor(epoch_us(ts) / 1e3)"),
    ("extract(epoch FROM ts)", "epoch(ts)"),
    ("dayofweek(ts)", "dayofweek(ts) + 1"),
    ("weekday(ts)", "isodow(ts) - 1"),
    ("extract(dayofweek_iso FROM ts)", "isodow(ts)"),
    ("weekofyear(ts)", "weekofyear(ts)"),
    ("from_unixtime(unix_timestamp(ts))", "strftime(ts, '%Y-%m-%d %H:%M:%S')"),
    ("timestamp_millis(unix_millis(ts))", "date_trunc('millisecond', ts::TIMESTAMP)"),
    ("unix_timestamp(ts) div 60", "trunc(floor(epoch_us(ts) / 1e6) / 60)"),
    ("floor(unix_timestamp(ts) / 60)", "floor(epoch_us(ts) / 6e7)"),
]


@pytest.fixture(scope="module")
def oracle() -> Any:
    return oracle_of(ROWS)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[ours for ours, _ in PAIRS])
def test_a_function_of_times_means_what_it_means_to_duckdb(ours: str, theirs: str, oracle: Any) -> None:
    assert ours_over(ours, ROWS) == theirs_over(theirs, oracle)
