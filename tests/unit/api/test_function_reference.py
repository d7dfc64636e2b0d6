"""The reference of functions is complete and up to date, and its examples hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.api.function_reference import answers, examples, function_text, functions_page, shown
from millrace.errors import RequestError
from millrace.language.expressions.functions import FAMILIES
from millrace.language.expressions.functions.aggregate_table import AGGREGATES
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES, KNOWN
from tests.e2e.commands import millrace

PAGE = Path(__file__).resolve().parents[3] / "docs" / "functions.md"


def test_the_page_of_functions_is_what_the_tables_say(request: pytest.FixtureRequest) -> None:
    text = functions_page()
    if request.config.getoption("--rewrite"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "write it again with: make golden"
    assert [name for name in KNOWN if f"`{name}" not in text] == []


def test_every_aggregate_is_declared() -> None:
    assert {name for each in AGGREGATES for name in (each.name, *each.also)} == set(AGGREGATE_NAMES)


def test_a_query_on_the_local_host_gives_the_values_of_all_examples() -> None:
    found = {each: heading for heading, family in FAMILIES.items() for each in family}
    items = ", ".join(f"{each.example} AS c{place}" for place, each in enumerate(found))
    (table,) = answers([f"SELECT {items} FROM t WHERE x = 4"], on="local")
    expected = {heading: examples(heading, family) for heading, family in FAMILIES.items()}
    for (each, heading), column in zip(found.items(), table.columns, strict=True):
        # Months leave a query as text.
        assert expected[heading][each] in (shown(column[0]), column[0].as_py()), each.example


def test_the_command_shows_a_function_by_any_of_its_names(tmp_path: Path) -> None:
    told = millrace("functions", "ifnull", folder=tmp_path)
    assert told.stdout.startswith("nvl(value T, otherwise T) T\n") and "nvl(NULL, 0) = 0" in told.stdout
    assert "Aggregates: approx_count_distinct" in millrace("functions", folder=tmp_path).stdout
    with pytest.raises(RequestError, match='function "summ" does not exist') as refused:
        function_text("summ")
    assert 'Did you mean "sum"?' in str(refused.value.hint)
