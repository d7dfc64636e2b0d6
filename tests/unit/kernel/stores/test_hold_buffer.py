from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import TIME, Batch
from millrace.kernel.stores import hold_buffer
from millrace.kernel.stores.hold_buffer import HoldBuffer


def batch(*times: int, first: int = 0) -> Batch:
    return Batch(pa.record_batch({"n": np.arange(first, first + len(times)), TIME: np.array(times, np.int64)}))


def released(buffer: HoldBuffer, last: int) -> list[tuple[int, int]] | None:
    found = buffer.release(last)
    return None if found is None else list(zip(found.times.tolist(), found.rows.column("n").to_pylist(), strict=True))


@pytest.mark.parametrize("gathered", [1, 2**16])
@pytest.mark.parametrize("saved", [False, True])
def test_rows_leave_in_order_of_time_and_then_of_entry(
    gathered: int, saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_buffer, "_GATHERED", gathered)
    buffer = HoldBuffer()
    for first, times in ((0, (5, 3)), (2, (3, 9)), (4, (1, 5))):
        buffer.add(batch(*times, first=first))
        if saved:
            buffer.changes()
    assert (buffer.least, len(buffer), buffer.least_after(3), buffer.least_from(4)) == (1, 6, 5, 5)
    assert released(buffer, 0) is None
    assert released(buffer, 5) == [(1, 4), (3, 1), (3, 2), (5, 0), (5, 5)]
    assert (buffer.least, len(buffer)) == (9, 1)
    buffer.add(batch(7))
    last = buffer.release_all()
    assert last is not None and last.times.tolist() == [7, 9]
    assert (buffer.least, len(buffer), buffer.release_all()) == (None, 0, None)


def test_a_buffer_continues_from_a_save() -> None:
    buffer = HoldBuffer()
    buffer.add(batch(4, 2, 8))
    buffer.release(2)
    restored = HoldBuffer()
    restored.restore(buffer.changes())
    assert (restored.least, len(restored)) == (4, 2)
    assert released(restored, 8) == [(4, 0), (8, 2)]


def test_what_is_kept_of_rows_may_be_other_columns() -> None:
    buffer = HoldBuffer("at", lambda rows: pa.table({"at": rows.times, "twice": 2 * rows.times}))
    buffer.add(batch(3, 1))
    buffer.add(batch(2))
    (table,) = buffer.between(2, 3)
    assert table.to_pydict() == {"at": [2, 3], "twice": [4, 6]}
    buffer.drop(2)
    assert (buffer.least, len(buffer)) == (3, 1)
