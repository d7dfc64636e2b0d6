"""The queries of the pages on SQL can be bound as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from millrace.language import parse_network
from millrace.plan.physical.stages import physical

PAGES = Path(__file__).resolve().parents[3] / "docs" / "sql"
STREAM = "CREATE STREAM s (k STRING, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');"


def test_every_complete_example_of_the_pages_is_accepted() -> None:
    text = "".join(page.read_text() for page in sorted(PAGES.glob("*.md")))
    blocks = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
    complete = [each for each in blocks if "…" not in each]
    # The code of a function is imported before a run: it must be somewhere.
    network = parse_network(STREAM + "".join(complete).replace("package.module:function", "operator:concat"))
    assert len(network.queries) == 16
    for name in ("name", "p95", "my_mean"):
        assert any(f" {name}" in each for each in complete)
    assert physical(network)
