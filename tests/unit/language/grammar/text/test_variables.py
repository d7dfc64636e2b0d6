"""Variables of a text."""

from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.language import filled, parse_network
from tests.unit.language.scripts import STREAMS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ${a:1}, '${b:x y}'", "SELECT 1, 'x y'"),
        ("SET a = 2; SELECT ${a}", "SET a = 2; SELECT 2"),
        ("/* c */ SET a = 'it''s'; SELECT '${a}' -- ${b}", "/* c */ SET a = 'it''s'; SELECT 'it''s' -- ${b}"),
        (
            "SET a = 5 MINUTES; set B = '${a} or so'; SELECT '${B}'",
            "SET a = 5 MINUTES; set B = '5 MINUTES or so'; SELECT '5 MINUTES or so'",
        ),
        ("SELECT ${given:2}; SET given = 3; SELECT ${given}", "SELECT 1; SET given = 3; SELECT 1"),
        ("path '${env:HOME}/${file:/secret}'", "path '${env:HOME}/${file:/secret}'"),
        ("ALTER QUERY q SET (a = 1); SELECT ${a:2}", "ALTER QUERY q SET (a = 1); SELECT 2"),
        ("SELECT ';SET a = 1;' AS b, ${a:2}", "SELECT ';SET a = 1;' AS b, 2"),
        ("SELECT ${a:}", "SELECT "),
    ],
)
def test_a_variable_has_the_value_given_or_set_before_or_its_default(text: str, expected: str) -> None:
    assert filled(text, {"given": "1"}) == expected


def test_a_variable_without_a_value_is_refused_at_its_place() -> None:
    with pytest.raises(QueryError) as raised:
        filled("SET lengt = 5;\nSELECT '${length}' FROM s; SET length = 3")
    assert (raised.value.place.line, raised.value.place.column) == (2, 9)
    assert 'Did you mean "lengt"' in raised.value.hint and "--var length=value" in raised.value.hint


def test_a_text_is_parsed_with_its_variables() -> None:
    text = "SET s = main1; SELECT len FROM ${s} WHERE len > ${least:3}"
    assert (
        parse_network(f"{text};{STREAMS}").queries
        == parse_network(f"SELECT len FROM main1 WHERE len > 3;{STREAMS}").queries
    )
