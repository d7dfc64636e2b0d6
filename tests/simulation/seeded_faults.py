"""Faults seeded into the code by hand: what a slip of ours would look like. The simulator must find each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import millrace.hosts.sinks.outputs as outputs
from millrace.hosts.local.intake import Intake
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, Punctuation, Times
from millrace.kernel.graph.delivery import Delivery
from millrace.kernel.graph.graph import GraphNode
from millrace.kernel.graph.snapshot import Snapshot, SnapshotLog
from millrace.kernel.joins.any_order.match_run import Questions
from millrace.kernel.joins.any_order.match_store import MatchStore
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.order import Entering, Order, less
from millrace.kernel.progress.partitioned_order import Partitioned
from millrace.kernel.updates.update_queue import UpdateQueue

SECOND = 1_000_000


def a_dropped_punctuation(patch: pytest.MonkeyPatch) -> None:
    """Every third bound that stands alone is not sent."""
    put, number = Delivery._put_bound, count()

    def dropping(self: Delivery, node: GraphNode, punctuation: Punctuation, by_arc: bool) -> None:
        if next(number) % 3 != 2:
            put(self, node, punctuation, by_arc)

    patch.setattr(Delivery, "_put_bound", dropping)


def an_off_by_one_bound(patch: pytest.MonkeyPatch) -> None:
    """A stream's bound is one microsecond too high."""
    after = Order.after
    patch.setattr(Order, "after", lambda self, entering: after(self, entering) + 1)


def a_segment_not_saved(patch: pytest.MonkeyPatch) -> None:
    """The last segment of a save is left out."""
    save = SnapshotLog.save

    def forgetting(self: SnapshotLog, *arguments: Any) -> Snapshot:
        saved = save(self, *arguments)
        return replace(saved, added=dict(list(saved.added.items())[:-1]))

    patch.setattr(SnapshotLog, "save", forgetting)


def the_least_over_partitions_lost(patch: pytest.MonkeyPatch) -> None:
    """The fastest partition sets the bound of the stream."""
    after = Partitioned.after

    def fastest(self: Partitioned, entering: Entering) -> Times:
        found = after(self, entering)
        return np.where(found == NO_BOUND, found, np.maximum(found, less(entering.greatest, self.disorder)))

    patch.setattr(Partitioned, "after", fastest)


def a_queue_that_forgets(patch: pytest.MonkeyPatch) -> None:
    """An update queue does not take the last of several rows."""
    on_batch = UpdateQueue.on_batch

    def forgetting(self: UpdateQueue, port: int, batch: Batch) -> Iterator[Element]:
        return on_batch(self, port, batch.slice(0, len(batch) - 1) if len(batch) > 1 else batch)

    patch.setattr(UpdateQueue, "on_batch", forgetting)


def a_wrong_comparison_in_a_band_join(patch: pytest.MonkeyPatch) -> None:
    """The upper end of a band is open."""
    init = Questions.__init__

    def open_band(self: Questions, source: Any, places: Any, latest: Times, upper: Times) -> None:
        init(self, source, places, latest, upper - 1)

    patch.setattr(Questions, "__init__", open_band)


def state_expired_early(patch: pytest.MonkeyPatch) -> None:
    """A join drops rows a second too soon."""
    release = MatchStore.release
    patch.setattr(MatchStore, "release", lambda self, bound: release(self, min(bound, END_OF_TIME - SECOND) + SECOND))


def an_accounting_slip(patch: pytest.MonkeyPatch) -> None:
    """Late rows are counted from zero again after a restart."""
    save = Ingress.save
    patch.setattr(Ingress, "save", lambda self: {**save(self), "late": 0})


def a_result_twice_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """The positions in the input that are saved are those of the save before."""
    positions, last = Intake.positions, dict[str, Any]()

    def stale(self: Intake) -> dict[str, Any]:
        found, now = dict(last), positions(self)
        last.clear()
        last.update(now)
        return {name: found.get(name, now[name]) for name in now}

    patch.setattr(Intake, "positions", stale)


def a_sync_left_out(patch: pytest.MonkeyPatch) -> None:
    """Staged results are not synced before the record that names them."""
    patch.setattr(outputs, "sync_all", lambda *paths: None)


SEEDED: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    a_dropped_punctuation: 2,
    an_off_by_one_bound: 2,
    a_segment_not_saved: 2,
    the_least_over_partitions_lost: 22,
    a_queue_that_forgets: 15,
    a_wrong_comparison_in_a_band_join: 30,
    state_expired_early: 122,
    an_accounting_slip: 1,
    a_result_twice_after_a_restart: 1,
    a_sync_left_out: 3,
}
"""A seed that finds each; `python -m tests.simulation --slips` finds others where the generator has changed."""
