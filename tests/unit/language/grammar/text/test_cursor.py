"""What is said of words that are nearly right."""

from __future__ import annotations

import pytest

from tests.unit.language.scripts import names, refusal, root

STREAM = "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'x')"


@pytest.mark.parametrize(
    ("text", "place", "meant"),
    [
        ("SELEC len FROM main1", "SELEC", '"SELECT"?'),
        ("CREAT STREAM s (a INT)", "CREAT", '"CREATE"?'),
        (STREAM.replace("STREAM", "STEAM"), "STEAM", '"STREAM"?'),
        (STREAM.replace("TIMESTAMP BY", "TIMSTAMP BY"), "TIMSTAMP", '"TIMESTAMP"?'),
        (STREAM.replace("ORDERED", "ORDERD"), "ORDERD", '"ORDERED"?'),
        (STREAM.replace("INT", "STRNG"), "STRNG", '"STRING"?'),
        ("SELECT CAST(len AS STRNG) FROM main1", "STRNG", '"STRING"?'),
        ("SELECT len FORM main1", "FORM", '"FROM"?'),
        ("SELECT len FROM main1 WERE len > 3", "WERE", '"WHERE"?'),
        ("SELECT len FROM main1 WHERE len > 3 ODER BY ts", "ODER", '"ORDER"?'),
        ("SELECT count(*) FROM main1 [RNAGE 1 MINUTE SLIDE 1 MINUTE]", "RNAGE", '"RANGE"?'),
        ("SELECT a.len FROM main1 a LEFT JION control b ON a.ts = b.ts", "JION", '"JOIN"?'),
        ("DROP QURY q", "QURY", '"QUERY"?'),
    ],
)
def test_a_misspelt_keyword_is_recognised(text: str, place: str, meant: str) -> None:
    error = refusal(text)
    assert error.hint.startswith(f"Did you mean {meant} ")
    assert error.place is not None
    assert error.place.text == place


@pytest.mark.parametrize(
    "text",
    [
        "SELECT len FROM main1 SEQ other",
        "SELECT len FROM main1 SEQ control WITHIN 5 MINUTES",
        STREAM + " also x",
        "SELECT len FROM main1 m1 m2",
    ],
)
def test_a_name_that_is_like_a_keyword_is_left_alone(text: str) -> None:
    assert "Did you mean" not in refusal(text).hint


@pytest.mark.parametrize("text", [f"{STREAM} SELECT a FROM s", "SELECT len FROM main1 SELECT ts FROM main1"])
def test_a_missing_semicolon_is_named(text: str) -> None:
    error = refusal(text)
    assert error.hint == "A semicolon is missing before it."
    assert error.place is not None
    assert error.place.text == "SELECT"


@pytest.mark.parametrize("text", ["SELECT upper(srcIP,) FROM main1", "SELECT 1 FROM main1 WHERE len IN (1, 2,)"])
def test_a_comma_with_nothing_after_it_is_refused(text: str) -> None:
    error = refusal(text)
    assert error.fact == 'expected a value after the comma, found ")"'


def test_a_name_stands_in_backquotes_or_double_quotes() -> None:
    script = STREAM.replace("s (a INT", '"my s" ("a b" INT, `c``d` INT')
    assert names(f'{script}; SELECT `a b` AS "x y", `c``d`, m."a b" AS z FROM "my s" AS m') == ["x y", "c`d", "z"]
    assert names('SELECT a.len FROM "main1" AS "a" JOIN other AS b USING ("srcIP") WINDOW 5 MINUTES') == ["len"]


@pytest.mark.parametrize("text", ['SELECT "len" FROM main1', 'SELECT 1 FROM main1 WHERE upper("LEN") = srcIP'])
def test_text_in_double_quotes_that_names_a_column_is_refused(text: str) -> None:
    error = refusal(text)
    assert "may be a column or text" in error.fact
    assert "for the column, or '" in error.hint


def test_other_text_may_stand_in_double_quotes() -> None:
    assert root('SELECT len FROM main1 WHERE srcIP = "a"') == root("SELECT len FROM main1 WHERE srcIP = 'a'")
