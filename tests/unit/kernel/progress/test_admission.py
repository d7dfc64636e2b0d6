from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import NO_BOUND, TIME, Batch
from millrace.kernel.progress.admission import FUTURE_SKEW
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.open_windows import ALWAYS, OpenWindows, open_windows, outlet_of
from millrace.kernel.progress.quarantine import UnreadRows, places
from millrace.kernel.progress.time_contract import EtsKind, TimeContract

TIMESTAMP = pa.timestamp("us", tz="UTC")


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64()).cast(TIMESTAMP)})


def external(disorder: int = 0, skew: int | None = None, lull: int | None = None) -> Ingress:
    ets: EtsKind = "none" if skew is None and lull is None else "on_demand"
    return Ingress(TimeContract("external", "ts", disorder, ets, skew, lull=lull))


def guarded(skew: int | None, *, live: bool = False) -> Ingress:
    return Ingress(TimeContract("external", "ts", max_future_skew=skew), live)


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
    ingress.follow([{"greatest": 10, "seen_at": 0, "bound": 10, "order": {}, "sequence": 0, "outlets": {}}])
    admission = ingress.readmit(Batch(pa.record_batch({TIME: [9, 10, 30]})))
    assert admission.admitted.times.tolist() == [10, 30]
    assert (ingress.bound, ingress.late) == (10, 1)


def test_a_row_from_the_future_is_quarantined_by_the_streams_own_time() -> None:
    ingress = guarded(10)
    admission = ingress.admit(rows(1_000, 1_010, 5_000, 1_020, 1_031, 1_030, 900), now=0)
    assert admission.admitted.times.tolist() == [1_000, 1_010, 1_020, 1_030]
    assert admission.late.times.tolist() == [900]
    assert (ingress.received, ingress.late, ingress.quarantined) == (7, 1, 2)
    assert (ingress.greatest, ingress.bound) == (1_030, 1_030), "a quarantined row moves nothing"


def test_a_live_stream_is_guarded_by_the_clock_without_being_asked() -> None:
    ingress = guarded(None, live=True)
    admission = ingress.admit(rows(0, FUTURE_SKEW + 7, FUTURE_SKEW + 8), now=7)
    assert admission.admitted.times.tolist() == [0, FUTURE_SKEW + 7]
    assert ingress.quarantined == 1
    assert len(guarded(3, live=True).admit(rows(10, 11, 10_000), now=7).admitted) == 1


def test_a_stream_that_is_not_live_is_guarded_only_if_asked() -> None:
    assert len(guarded(None).admit(rows(0, 10**15), now=0).admitted) == 2


def test_a_guard_does_not_trip_over_the_ends_of_time() -> None:
    ingress = guarded(10)
    assert len(ingress.admit(rows(2**63 - 5, -(2**62), 2**63 - 2), now=0).admitted) == 2
    assert ingress.late == 1


def test_a_promise_from_the_future_is_not_believed() -> None:
    contract = TimeContract("external", "ts", punctuation=Column("until"), max_future_skew=10)
    ingress = Ingress(contract)
    ingress.admit(rows(5).append_column("until", pa.array([10**6]).cast(TIMESTAMP)), now=0)
    assert ingress.bound == NO_BOUND
    ingress.admit(rows(5).append_column("until", pa.array([15]).cast(TIMESTAMP)), now=0)
    assert ingress.bound == 15


def test_the_bound_after_a_row_is_there_for_each_row_let_in() -> None:
    ingress = external(disorder=2)
    admission = ingress.admit(rows(10, 9, 5, 20, 17), now=0)
    assert admission.admitted.times.tolist() == [10, 9, 20]
    assert admission.bounds.tolist() == [8, 8, 18]


def test_an_internal_stream_is_stamped_by_the_clock_and_never_goes_back() -> None:
    ingress = Ingress(TimeContract("internal", "at", ets="on_demand"))
    first = ingress.admit(pa.record_batch({"n": [1, 2]}), now=100).admitted
    assert first.times.tolist() == [100, 100]
    assert first.rows.column("at").cast(pa.int64()).to_pylist() == [100, 100]
    assert ingress.admit(pa.record_batch({"n": [3]}), now=90).admitted.times.tolist() == [100]


def test_a_latent_stream_has_a_time_but_no_column_for_it() -> None:
    ingress = Ingress(TimeContract("latent", ets="on_demand"))
    admitted = ingress.admit(pa.record_batch({"n": [1]}), now=7).admitted
    assert admitted.rows.schema.names == ["n", TIME]
    assert admitted.times.tolist() == [7]


def test_an_empty_batch_is_harmless() -> None:
    ingress = external()
    assert len(ingress.admit(rows(), now=0).admitted) == 0
    assert ingress.bound == NO_BOUND


def test_rows_that_could_not_be_read_are_received_and_quarantined_and_move_nothing() -> None:
    ingress = external()
    ingress.reject(UnreadRows(pa.array(["bad"] * 3), lambda at: places(["x"] * len(at), None, at)))
    assert (ingress.received, ingress.quarantined, ingress.late, ingress.bound) == (3, 3, 0, NO_BOUND)


def windows(*outlets: str) -> tuple[OpenWindows, ...]:
    return tuple(found for outlet in outlets if (found := open_windows(outlet)) is not None)


def test_of_late_rows_those_whose_window_is_open_are_taken_by_its_reader_alone() -> None:
    ingress = external()
    ingress.windows = tens, fives = windows(outlet_of("range", 10, 0), outlet_of("range", 5, 0))
    ingress.admit(rows(18), now=0)
    admission = ingress.admit(rows(16, 15, 14, 10, 9, 20, 10, 19), now=0)
    assert admission.admitted.times.tolist() == [20]
    assert admission.late.times.tolist() == [9, 10, 19], "after the row of 20 the windows before it are closed"
    assert admission.through(tens).times.tolist() == [16, 15, 14, 10, 20]
    assert admission.through(fives).times.tolist() == [16, 15, 20]
    assert (ingress.received, ingress.late) == (9, 3)


def test_a_reader_without_windows_takes_every_late_row() -> None:
    ingress = external()
    ingress.windows = windows(ALWAYS)
    admission = ingress.admit(rows(9, 3), now=0)
    assert admission.through(ingress.windows[0]).times.tolist() == [3, 9] and not len(admission.late)


def test_no_reader_takes_a_late_row_whose_windows_are_closed() -> None:
    ingress = external()
    ingress.windows = windows(outlet_of("range", 10, 0))
    admission = ingress.admit(rows(20, 19), now=0)
    assert admission.late.times.tolist() == [19]
    assert admission.through(ingress.windows[0]).times.tolist() == [20]
