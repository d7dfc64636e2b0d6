"""Expressions against DuckDB, over columns with nulls and edge values."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from tests.differential.duckdb_expressions import oracle_of, ours_over, theirs_over

BIG = 2**53 + 1
UTC = dt.UTC
ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "n": pa.array([None, 0, 1, -1, 7, -7, BIG, -BIG], pa.int64()),
        "m": pa.array([3, 0, None, 2, -2, 3, 1, -1], pa.int64()),
        "x": pa.array([None, 0.0, -0.0, 1.5, -2.5, 1e300, 0.1, 2.0], pa.float64()),
        "s": pa.array([None, "", "a", "Ab", "  b ", "ä%_", "abcdef", "10"], pa.string()),
        "t": pa.array(["a", None, "a", "ab", "B", "", "cd", "10"], pa.string()),
        "p": pa.array([None, True, False, True, False, None, True, False], pa.bool_()),
        "q": pa.array([None, None, None, True, True, False, False, False], pa.bool_()),
        "ts": pa.array(
            [
                None,
                dt.datetime(1970, 1, 1, tzinfo=UTC),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC),
                dt.datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC),
                dt.datetime(1900, 3, 1, 1, 2, 3, tzinfo=UTC),
                dt.datetime(2000, 1, 1, tzinfo=UTC),
                dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
            ],
            pa.timestamp("us", tz="UTC"),
        ),
    }
)

# The same text for both.
SAME = """
n + m|n - m|-n|n * 2|x + n|x * 0.5|abs(n)|abs(x)|n % nullif(m, 0)
n = m|n <> m|n < m|n <= m|n > m|n >= m|n = x|s = t|s < t|s >= t
p AND q|p OR q|NOT p|p AND NOT q|p OR q AND p|n IS NULL|n IS NOT NULL|p = q
n IN (1, 7, 0)|n NOT IN (1, 7)|n IN (1, NULL)|s IN ('a', '', NULL)|n BETWEEN m AND 7|n NOT BETWEEN -1 AND 1
coalesce(n, m, 0)|coalesce(s, t)|nullif(n, 7)|nullif(s, '')
CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END|CASE WHEN p THEN n ELSE m END|CASE n WHEN 1 THEN x ELSE 0.0 END
upper(s)|lower(s)|trim(s)|ltrim(s)|rtrim(s)|length(s)|length(t)|replace(s, 'b', 'xy')|substring(s, 2)|substring(s, 2, 3)
s LIKE 'a%'|s LIKE '%b%'|s LIKE '_b%'|s NOT LIKE 'a%'|s ILIKE 'AB%'|s LIKE '%'
floor(least(x, 1e15))|ceil(least(x, 1e15))|sqrt(abs(x))|exp(n % 3)|ln(abs(n) + 1)|power(x, 2)|round(x)|round(n, -1)
greatest(n, m)|least(n, m)|greatest(s, t)
CAST(n AS DOUBLE)|CAST(n AS STRING)|CAST(m AS INT)|CAST(p AS INT)
year(ts)|month(ts)|day(ts)|hour(ts)|minute(ts)
date_trunc('hour', ts)|date_trunc('day', ts)|date_trunc('month', ts)|date_trunc('minute', ts)
ts < TIMESTAMP '2000-01-01 00:00:00'|ts = TIMESTAMP '1970-01-01 00:00:00'|ts - INTERVAL 90 MINUTES|ts + INTERVAL 1 DAY
"""

# Ours, and what it means in DuckDB's words where the two dialects differ on purpose.
DIFFERENT = [
    # A division by zero is null, for whole numbers and fractions alike.
    ("n / m", "n::DOUBLE / nullif(m, 0)"),
    ("x / m", "x / nullif(m, 0)::DOUBLE"),
    ("n % m", "n % nullif(m, 0)"),
    # div cuts off towards zero, also below it.
    ("n div m", "n // nullif(m, 0)"),
    ("n div 2", "trunc(n::DECIMAL(38, 0) / 2)::BIGINT"),
    ("n <=> m", "n IS NOT DISTINCT FROM m"),
    # Concatenation with a null is null, as in Spark; DuckDB's concat skips nulls, its || does not.
    ("concat(s, '-', t)", "s || '-' || t"),
    # Text that is no number casts to null.
    ("CAST(s AS INT)", "TRY_CAST(trim(s) AS INT)"),
    ("CAST(s AS DOUBLE)", "TRY_CAST(trim(s) AS DOUBLE)"),
    # A cast of a fraction cuts off.
    ("CAST(x / 1e290 AS BIGINT)", "trunc(x / 1e290)::BIGINT"),
    # A time as text names no zone.
    ("CAST(ts AS STRING)", "CAST(ts::TIMESTAMP AS VARCHAR)"),
    # A logarithm that does not exist is null.
    ("ln(n)", "ln(CASE WHEN n > 0 THEN n END)"),
    ("unix_micros(ts)", "epoch_us(ts)"),
    ("timestamp_seconds(m)", "to_timestamp(m)"),
    ("second(ts)", "second(ts)"),
    ("s RLIKE '^[ab]'", "regexp_matches(s, '^[ab]')"),
    ("startswith(s, 'a')", "starts_with(s, 'a')"),
    ("contains(s, 'b')", "contains(s, 'b')"),
]

PAIRS = [(text, text) for text in SAME.strip().replace("\n", "|").split("|") if text] + DIFFERENT


@pytest.fixture(scope="module")
def oracle() -> Any:
    return oracle_of(ROWS)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[ours for ours, _ in PAIRS])
def test_an_expression_means_what_it_means_to_duckdb(ours: str, theirs: str, oracle: Any) -> None:
    query = theirs.replace("AS STRING", "AS VARCHAR").replace("INTERVAL 90 MINUTES", "INTERVAL '90 minutes'")
    assert ours_over(ours, ROWS) == theirs_over(query, oracle)
