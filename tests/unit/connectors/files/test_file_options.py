from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from millrace.connectors.files.file_options import read_options
from millrace.connectors.files.file_reader import read_file
from millrace.errors import RequestError
from millrace.plan.nodes.endpoints import Connector


def refusal(format: str, options: dict[str, str]) -> RequestError:
    with pytest.raises(RequestError) as raised:
        read_options(format, options)
    return raised.value


def test_an_unknown_option_is_refused_with_the_near_miss() -> None:
    error = refusal("csv", {"delimeter": ";"})
    assert error.fact == 'format "csv" has no option "delimeter"'
    assert 'Did you mean "delimiter"?' in error.hint


def test_an_option_of_another_format_is_refused() -> None:
    assert refusal("json", {"delimiter": ";"}).fact == 'format "json" has no option "delimiter"'


@pytest.mark.parametrize(
    ("key", "value"), [("header", "yes"), ("on_malformed", "ignore"), ("timestamp_format", "ISO8601")]
)
def test_a_value_that_an_option_does_not_take_is_refused(key: str, value: str) -> None:
    assert refusal("csv", {key: value}).fact == f'option "{key}" does not take "{value}"'


@pytest.mark.parametrize("value", ["", "ab", "é"])
def test_a_delimiter_is_one_ascii_character(value: str) -> None:
    assert "one ASCII character" in refusal("csv", {"delimiter": value}).hint


def test_a_tab_may_be_spelled() -> None:
    assert read_options("csv", {"delimiter": "\\t"}).delimiter == "\t"


def test_wrong_options_are_refused_before_anything_is_read() -> None:
    with pytest.raises(RequestError):
        read_file(Path("missing"), Connector("avro"), pa.schema([]))
