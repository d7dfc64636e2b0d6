"""Every line of the page for those who come from other systems: what it says to write is run, and gives rows."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.language import bind_script, filled, parse_script
from millrace.testing import Host

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "coming-from.md").read_text()
STREAMS = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)[0]
LINES = re.findall(r"^\| `(.*?)` \| (?:`+(.*?)`+|as it is) \|$", PAGE, flags=re.MULTILINE)
TIMES = pa.array(
    [datetime(2024, 1, 1) + timedelta(seconds=21 * number) for number in range(40)], pa.timestamp("us", "UTC")
)
CLICKS = {"user": ["a", "b"] * 20, "url": ["/shop", "/x"] * 20, "amount": pa.array(range(40), pa.int32()), "ts": TIMES}
VIEWS = {"user": ["a", "b"] * 20, "page": ["p", "q"] * 20, "ts": TIMES}
INPUTS = {"clicks": [pa.table(CLICKS)], "views": [pa.table(VIEWS)]}


def test_every_line_is_read() -> None:
    assert len(LINES) == len(re.findall(r"^\| `", PAGE, flags=re.MULTILINE)) >= 60


@pytest.mark.parametrize(("there", "here"), LINES, ids=[there for there, _ in LINES])
def test_what_the_page_says_to_write_gives_rows(there: str, here: str) -> None:
    text = filled(f"{STREAMS};{here or there}")
    network, answers = bind_script(parse_script(text))
    if not network.queries:
        assert answers or re.match(r"(CREATE|SET)\b", here or there)
        return
    found = Host("local").run(network, INPUTS)
    assert all(found.values()) and set(found) == {each.name for each in network.queries}


@pytest.mark.parametrize(
    "there", [there for there, here in LINES if here and not there.startswith(("df.", "spark.", "SHOW TABLES"))]
)
def test_what_is_written_otherwise_elsewhere_is_refused_with_a_way_out(there: str) -> None:
    with pytest.raises(RequestError) as raised:
        bind_script(parse_script(f"{STREAMS};{there}"))
    assert raised.value.hint and raised.value.place is not None
