"""What window aggregates give, as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.kernel.elements import Batch, Element


def result_rows(elements: Sequence[Element], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The group of each result (None without one), its window's start and end, and those of the columns that it has."""
    found = []
    for each in elements:
        if isinstance(each, Batch):
            starts, ends = (each.rows.column(name).cast("int64") for name in ("window_start", "window_end"))
            group = each.rows.column("k").to_pylist() if "k" in each.rows.schema.names else [None] * len(each)
            columns = [each.rows.column(name).to_pylist() for name in names if name in each.rows.schema.names]
            found += list(zip(group, starts.to_pylist(), ends.to_pylist(), *columns, strict=True))
    return sorted(found, key=repr)
