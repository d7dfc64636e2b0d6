from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.stores.recent_rows import RecentRows


def test_numbers_stay_with_their_rows_however_many_there_are() -> None:
    kept = RecentRows(np.int64, np.bool_)
    for start in range(0, 5_000, 500):
        numbers = np.arange(start, start + 500)
        kept.add(pa.record_batch({"n": numbers}), numbers, start % 1_000 == 0)
    assert kept.numbers(0).tolist() == kept.rows.column("n").to_pylist() == list(range(5_000))
    assert kept.numbers(1).tolist() == [number % 1_000 < 500 for number in range(5_000)]
