"""Keys of unequal activity, and slow keys that are updated at once."""

from __future__ import annotations

import numpy as np
import pytest

from millrace.experiments.figures.updates.slow_updaters import BurstCase, TradingDay, activity
from millrace.experiments.figures.updates.update_queues import GUARDED, IN_PLACE, SlowKeys


def test_the_day_has_as_many_keys_and_updates_as_the_paper_says() -> None:
    updates = TradingDay().updates()
    counts = np.bincount(updates.keys)
    assert len(counts) > 3000 and (counts.max(), counts.min()) == (4305, 1)
    assert (counts == activity()).all() and (np.diff(updates.came) >= 0).all()


def test_slow_keys_come_at_once_or_at_any_time() -> None:
    for at_once, moments in ((True, 1), (False, 3)):
        updates = SlowKeys(10, 3, 100, at_once=at_once).updates()
        first = {key: int(updates.came[updates.keys == key][0]) for key in (7, 8, 9)}
        assert len(set(first.values())) == moments


@pytest.mark.long
def test_slow_keys_that_cut_are_fresher_and_fast_ones_no_staler() -> None:
    cut, in_place = (BurstCase(queue, 3).measure() for queue in (GUARDED, IN_PLACE))
    assert cut["slow"] < in_place["slow"] / 2
    assert cut["fast"] == pytest.approx(in_place["fast"], rel=0.05)
