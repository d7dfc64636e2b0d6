"""WITH name AS (...), GROUP BY ALL and * EXCEPT mean what they stand for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import millrace as mr
from tests.unit.language.scripts import names, refusal, root

WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
RANK = "rank() OVER (PARTITION BY window_start ORDER BY count(*)) AS r"


C = "SELECT len, ts FROM main1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"WITH c AS ({C}) SELECT len FROM c WHERE c.len < 9", f"SELECT len FROM ({C}) AS c WHERE c.len < 9"),
        (
            f"WITH c AS ({C}), d AS (SELECT len, ts FROM c) SELECT d.len FROM c, d WHERE c.ts = d.ts",
            f"SELECT d.len FROM ({C}) AS c, (SELECT len, ts FROM ({C}) AS c) AS d WHERE c.ts = d.ts",
        ),
        (
            f"SELECT x.len FROM (WITH c AS ({C}) SELECT len, ts FROM c AS y) AS x",
            f"SELECT x.len FROM (SELECT len, ts FROM ({C}) AS y) AS x",
        ),
        (f"WITH control AS ({C}) SELECT * FROM control", C),
        (f"CREATE QUERY q AS WITH c AS ({C}) SELECT * FROM c UNION SELECT * FROM c", f"{C} UNION {C}"),
        (f"WITH c AS ({C}) SELECT * FROM c UNION C", f"{C} UNION {C}"),
        (f"WITH c AS ({C}) SELECT count(*) FROM c {WINDOW}", f"SELECT count(*) FROM ({C}) {WINDOW}"),
        (
            f"WITH c AS ({C}) SELECT count(*) FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            f"SELECT count(*) FROM ({C}) {WINDOW}",
        ),
    ],
)
def test_a_common_table_stands_for_a_subquery(written: str, meant: str) -> None:
    assert root(written) == root(meant)


def test_a_common_table_is_known_only_in_its_own_query() -> None:
    assert (
        'stream "c" does not exist'
        in refusal("WITH c AS (SELECT len FROM main1) SELECT len FROM c; SELECT 1 FROM c").fact
    )


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("WITH RECURSIVE c AS (SELECT len FROM main1) SELECT 1 FROM c", "WITH RECURSIVE is not supported", "RECURSIVE"),
        ("WITH c AS (SELECT 1 FROM main1), C AS (SELECT 1 FROM main1) SELECT 1 FROM c", '"C" is declared twice', "C"),
        ("WITH c AS SELECT len FROM main1 SELECT 1 FROM c", 'expected "("', "SELECT"),
        ("WITH c (a, b) AS (SELECT len FROM main1) SELECT 1 FROM c", "2 names are given for 1 columns", "b"),
        ("WITH c (a, A) AS (SELECT len, ts FROM main1) SELECT 1 FROM c", 'two columns are named "A"', "A"),
        ("WITH c AS (SELECT len FROM main1)", "expected SELECT, found the end", ""),
        ("WITH c AS (SELECT lenn FROM main1) SELECT 1 FROM c", 'column "lenn" does not exist', "lenn"),
        ("WITH c AS (SELECT len FROM main1) SELECT lne FROM c", 'column "lne" does not exist', "lne"),
        ("WITH (a = 1) SELECT len FROM main1", "expected the name of a common table", "("),
        ("WITH c AS (SELECT len FROM main1) SELECT len FROM c UNION silent TRUTH c", "is not a stream of this", "c"),
    ],
)
def test_a_wrong_common_table_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.place is not None
    assert error.place.text == offending


# GROUP BY ALL


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"SELECT srcIP, upper(destIP) AS d, count(*) AS n, 5 AS five FROM main1 {WINDOW} GROUP BY ALL HAVING n > 3",
         f"SELECT srcIP, upper(destIP) AS d, count(*) AS n, 5 AS five FROM main1 {WINDOW} GROUP BY 1, d HAVING n > 3"),
        (f"SELECT window_start, srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY ALL",
         f"SELECT window_start, srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY srcIP"),
        ("SELECT window(ts, '1 minute'), srcIP, count(*) AS n FROM main1 GROUP BY ALL",
         f"SELECT window_start, window_end, srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY srcIP"),
        ("SELECT date_trunc('hour', ts) AS h, sum(len) AS s FROM main1 GROUP BY ALL",
         "SELECT date_trunc('hour', ts) AS h, sum(len) AS s FROM main1 GROUP BY h"),
        (f"SELECT count(*) AS n FROM main1 {WINDOW} GROUP BY ALL", f"SELECT count(*) AS n FROM main1 {WINDOW}"),
        (f"SELECT srcIP, {RANK} FROM main1 {WINDOW} GROUP BY ALL",
         f"SELECT srcIP, {RANK} FROM main1 {WINDOW} GROUP BY srcIP"),
    ],
)  # fmt: skip
def test_group_by_all_groups_by_what_is_not_aggregated(written: str, meant: str) -> None:
    assert root(written) == root(meant)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("SELECT srcIP, count(*) AS n FROM main1 GROUP BY ALL", "an aggregate without a window"),
        (f"SELECT len + count(*) AS n FROM main1 {WINDOW} GROUP BY ALL", 'column "len" is neither grouped'),
        (f"SELECT m.*, count(*) AS n FROM main1 {WINDOW} AS m GROUP BY ALL", "* cannot be selected"),
        (f"SELECT srcIP, count(*) AS n FROM main1 {WINDOW} GROUP BY ALL, len", 'unexpected ","'),
    ],
)
def test_a_wrong_group_by_all_is_refused(text: str, fact: str) -> None:
    assert fact in refusal(text).fact


# * EXCEPT

JOINED = "main1 AS a JOIN other AS b ON a.ts = b.ts"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * EXCEPT (LEN, ts) FROM main1", ["srcIP", "destIP"]),
        ("SELECT * EXCLUDE (len) FROM main1", ["srcIP", "destIP", "ts"]),
        ("SELECT m.* EXCEPT (len), len + 1 AS more FROM main1 AS m", ["srcIP", "destIP", "ts", "more"]),
        ("SELECT DISTINCT * EXCEPT (len) FROM main1", ["srcIP", "destIP", "ts"]),
        (f"SELECT * EXCEPT (a.len, b.ts, seen) FROM {JOINED}",
         ["a_srcIP", "a_destIP", "ts", "b_srcIP", "b_destIP", "len"]),
        (f"SELECT a.len, b.* EXCEPT (len, ts) FROM {JOINED}", ["len", "srcIP", "destIP", "seen"]),
        ("SELECT * EXCEPT (srcIP, a.ts, destIP) FROM main1 AS a JOIN main2 AS b ON a.ts = b.at",
         ["a_len", "source", "dest", "b_len", "at"]),
        ("SELECT * EXCEPT (srcIP) FROM main1 AS a JOIN silent AS b USING (srcIP) WINDOW 5 MINUTES",
         ["destIP", "a_len", "ts", "b_len"]),
    ],
)  # fmt: skip
def test_a_star_leaves_out_the_columns_of_except(text: str, columns: list[str]) -> None:
    assert names(text) == columns


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT * EXCEPT (leng) FROM main1", 'column "leng" does not exist', "leng"),
        ("SELECT m.* EXCEPT (leng) FROM main1 m", 'column "leng" does not exist', "leng"),
        (f"SELECT * EXCEPT (len) FROM {JOINED}", 'column "len" exists in several inputs', "len"),
        ("SELECT * EXCEPT (srcIP, len) FROM silent", "EXCEPT leaves no column", "* EXCEPT (srcIP, len)"),
        ("SELECT * REPLACE (1 AS len) FROM main1", "REPLACE or RENAME", "* REPLACE (1 AS len)"),
        ("SELECT m.* REPLACE (1 AS len) FROM main1 m", "REPLACE or RENAME", "m.* REPLACE (1 AS len)"),
    ],
)
def test_a_wrong_except_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.place is not None
    assert error.place.text == offending


def test_they_answer_from_python_too() -> None:
    rows = pa.table({"k": ["a", "b", "a"], "v": [1, 2, 4], "ts": pa.array([1, 2, 3], pa.timestamp("us"))})
    net = mr.Network()
    net.stream("s", "k STRING, v INT, ts TIMESTAMP", time="ts", source=[rows])
    net.sql(
        f"CREATE QUERY q AS WITH c AS (SELECT * EXCEPT (v) FROM s) SELECT k, count(*) AS n FROM c {WINDOW} GROUP BY ALL"
    )
    found = net.run(on="virtual", until="end").results("q").to_pylist()
    assert sorted((row["k"], row["n"]) for row in found) == [("a", 2), ("b", 1)]
