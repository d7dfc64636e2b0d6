from __future__ import annotations

import numpy as np
import pytest

from millrace.kernel.latency import Latency


@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_right_within_a_sixteenth(seed: int) -> None:
    micros = np.random.default_rng(seed).exponential(50_000, 1000).astype(np.int64)
    latency = Latency()
    latency.add(micros)
    for share in (0.01, 0.5, 0.99):
        exact = np.sort(micros)[max(int(np.ceil(share * 1000)) - 1, 0)]
        assert exact * 15 / 16 - 1 <= latency.quantile(share) <= exact


def test_single_lengths_and_columns_of_them_count_alike() -> None:
    micros = np.array([0, 1, 31, 32, 33, 1000, 2**20, 2**40 + 12345, 7])
    together, apart = Latency(), Latency()
    together.add(micros)
    for each in micros.tolist():
        apart.add_one(each)
    shares = np.linspace(0, 1, 30)
    assert [together.quantile(each) for each in shares] == [apart.quantile(each) for each in shares]
    assert (together.count, together.sum, together.max) == (apart.count, apart.sum, apart.max)


def test_a_copy_stands_still() -> None:
    latency = Latency()
    latency.add_one(5)
    copy = latency.copy()
    latency.add_one(500)
    assert (copy.count, copy.max, copy.mean, copy.quantile(1.0)) == (1, 5, 5.0, 5)
