"""Forms of other systems are refused by name, with what to write here."""

from __future__ import annotations

import pytest

from millrace.errors import NotYet
from tests.unit.language.scripts import names, refusal

COUNT = "SELECT count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE]"


@pytest.mark.parametrize(
    ("text", "form", "hint"),
    [
        ("SELECT len FROM main1 OFFSET 5", "OFFSET", "filter with WHERE"),
        ("SELECT len FROM main1 ORDER BY ts OFFSET 5", "OFFSET", "filter with WHERE"),
        ("SELECT len FROM main1 EXCEPT SELECT len FROM main2", "EXCEPT", "LEFT JOIN"),
        (f"{COUNT} GROUP BY ROLLUP(srcIP)", "ROLLUP", "one query for each"),
        (f"{COUNT} GROUP BY srcIP, CUBE (destIP)", "CUBE", "one query for each"),
        (f"{COUNT} GROUP BY GROUPING SETS ((srcIP), ())", "GROUPING SETS", "one query for each"),
        (f"{COUNT} GROUP BY srcIP WITH ROLLUP", "WITH ROLLUP", "one query for each"),
        ("SELECT len FROM main1 EMIT CHANGES", "EMIT CHANGES", "when it closes"),
        ("SELECT 1 FROM main1 MATCH_RECOGNIZE (PATTERN (a b))", "MATCH_RECOGNIZE", "SEQ"),
        ("SELECT len FROM main1 TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "WHERE"),
        ("SELECT * FROM main1 PIVOT (sum(len) FOR srcIP IN ('a'))", "PIVOT", "FILTER"),
        ("SELECT len FROM main1 SORT BY len", "SORT BY", "ORDER BY"),
    ],
)
def test_a_clause_of_another_system_is_refused_by_name(text: str, form: str, hint: str) -> None:
    error = refusal(text)
    assert isinstance(error, NotYet)
    assert error.fact == f"{form} is not supported yet"
    assert hint in error.hint
    assert error.place is not None
    assert error.place.text == form


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT len FROM main1", "MATERIALIZED", "CREATE QUERY"),
        ("SELECT count(*) FROM main1 GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)", "TUMBLE(ts, INTERVAL '1' MINUTE)",
         "GROUP BY window(ts, '1 minute')"),
        ("SELECT len FROM main1 WHERE ts > now()", "now()", "reads no clock"),
        ("SELECT hop_start() FROM main1", "hop_start()", "window_start"),
        (f"{COUNT} GROUP BY srcIP ORDER BY n DESC", "n",
         "QUALIFY row_number() OVER (PARTITION BY window_start ORDER BY n DESC) <= 10"),
        ("SELECT sum(len) OVER (PARTITION BY srcIP ORDER BY ts) FROM main1",
         "sum(len) OVER (PARTITION BY srcIP ORDER BY ts)", "[ROWS 100 PARTITION BY k]"),
        ("SELECT lopsided(len) FROM main1 [RANGE 1 s SLIDE 1 s]", "lopsided(len)", "CREATE AGGREGATE lopsided("),
        ("SELECT a.len FROM TUMBLE(TABLE main1, DESCRIPTOR(ts), 5 s) a JOIN control b ON a.ts = b.ts",
         "TUMBLE(TABLE main1, DESCRIPTOR(ts), 5 s)", "date_trunc"),
    ],
)  # fmt: skip
def test_a_statement_or_function_of_another_system_is_answered_with_ours(text: str, place: str, hint: str) -> None:
    error = refusal(text)
    assert hint in error.hint
    assert "Did you mean" not in error.hint
    assert error.place is not None
    assert error.place.text == place


def test_words_of_such_forms_can_be_names() -> None:
    text = "SELECT `cube`.len AS `limit` FROM main1 AS `cube` JOIN other AS pivot USING (srcIP) WINDOW 5 MINUTES"
    assert names(text) == ["limit"]
    assert names("SELECT `limit` FROM (SELECT len AS `limit`, ts FROM main1) [ROWS 5] GROUP BY `limit`")[-1] == "limit"
