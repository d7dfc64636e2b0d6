from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, NO_BOUND
from millrace.kernel.stores.recent_rows import RecentRows, concat_rows


def test_numbers_stay_with_their_rows_however_many_there_are() -> None:
    kept = RecentRows(np.int64, np.bool_)
    for start in range(0, 5_000, 500):
        numbers = np.arange(start, start + 500)
        kept.add(pa.record_batch({"n": numbers}), numbers, start % 1_000 == 0)
    assert kept.numbers(0).tolist() == kept.rows.column("n").to_pylist() == list(range(5_000))
    assert kept.numbers(1).tolist() == [number % 1_000 < 500 for number in range(5_000)]


def test_rows_that_do_not_say_when_they_arrived_are_kept_with_those_that_do() -> None:
    plain = pa.record_batch({"n": [1, 2]})
    arrived = pa.record_batch({"n": [3], ARRIVED: [70]})
    assert concat_rows([plain, arrived]).column(ARRIVED).to_pylist() == [NO_BOUND, NO_BOUND, 70]
    assert concat_rows([arrived, plain]).column("n").to_pylist() == [3, 1, 2]
    assert concat_rows([plain, plain]).schema.names == ["n"]
