from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import NO_BOUND, TIME, Batch
from millrace.kernel.progress import Ingress, TimeContract

TIMESTAMP = pa.timestamp("us", tz="UTC")


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64()).cast(TIMESTAMP)})


def external(disorder: int = 0, skew: int | None = None) -> Ingress:
    return Ingress(TimeContract("external", "ts", disorder, "none" if skew is None else "on_demand", skew))


def test_a_row_within_the_disorder_is_let_in_and_one_beyond_it_is_late() -> None:
    ingress = external(disorder=5)
    admission = ingress.admit(rows(10, 5, 4, 20, 15, 14), now=0)
    assert admission.admitted.times.tolist() == [10, 5, 20, 15]
    assert admission.late.times.tolist() == [4, 14]
    assert (ingress.received, ingress.late, ingress.bound) == (6, 2, 15)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_late_does_not_depend_on_how_rows_are_batched(seed: int) -> None:
    random = np.random.default_rng(seed)
    times = random.integers(-100, 100, 60).tolist()
    whole, pieces = external(disorder=20), external(disorder=20)
    expected = whole.admit(rows(*times), now=0).admitted.times.tolist()
    cuts = sorted({0, 60, *random.integers(0, 60, 4).tolist()})
    found = [
        time
        for begin, end in pairwise(cuts)
        for time in pieces.admit(rows(*times[begin:end]), now=0).admitted.times.tolist()
    ]
    assert found == expected
    assert pieces.save() == whole.save()


def test_a_row_without_a_time_is_quarantined() -> None:
    ingress = external()
    assert len(ingress.admit(rows(1, None, 2), now=0).admitted) == 2
    assert (ingress.received, ingress.late, ingress.quarantined) == (3, 0, 1)


def test_rows_stamped_elsewhere_are_checked_against_the_bound_without_moving_it() -> None:
    ingress = external()
    ingress.observe(10, now=0)
    admission = ingress.readmit(Batch(pa.record_batch({TIME: [9, 10, 30]})))
    assert admission.admitted.times.tolist() == [10, 30]
    assert (ingress.bound, ingress.late) == (10, 1)


def test_an_external_ets_is_the_last_time_plus_the_silence_less_the_skew() -> None:
    ingress = external(disorder=2, skew=3)
    assert ingress.ets(now=1_000) is None, "nothing is known of a stream that never spoke"
    ingress.admit(rows(50), now=1_000)
    assert ingress.bound == 48
    assert ingress.ets(now=1_001) is None, "it would not improve the bound"
    assert ingress.ets(now=1_010) == 57
    assert ingress.reaches(57) == 1_010


def test_an_external_stream_without_skew_is_never_spoken_for() -> None:
    ingress = external()
    ingress.admit(rows(50), now=0)
    assert ingress.ets(now=10**9) is None
    assert ingress.reaches(60) is None


def test_an_internal_stream_is_stamped_by_the_clock_and_never_goes_back() -> None:
    ingress = Ingress(TimeContract("internal", "at", ets="on_demand"))
    first = ingress.admit(pa.record_batch({"n": [1, 2]}), now=100).admitted
    assert first.times.tolist() == [100, 100]
    assert first.rows.column("at").cast(pa.int64()).to_pylist() == [100, 100]
    assert ingress.admit(pa.record_batch({"n": [3]}), now=90).admitted.times.tolist() == [100]
    assert ingress.ets(now=130) == 130


def test_a_latent_stream_has_a_time_but_no_column_for_it() -> None:
    ingress = Ingress(TimeContract("latent", ets="on_demand"))
    admitted = ingress.admit(pa.record_batch({"n": [1]}), now=7).admitted
    assert admitted.rows.schema.names == ["n", TIME]
    assert admitted.times.tolist() == [7]


def test_an_empty_batch_is_harmless() -> None:
    ingress = external()
    assert len(ingress.admit(rows(), now=0).admitted) == 0
    assert ingress.bound == NO_BOUND
