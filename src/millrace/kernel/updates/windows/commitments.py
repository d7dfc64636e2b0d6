"""The key transition graph of windows under update semantics (002 section 6.2): LAZY and EAGER.

Rules:
- A key WAITs in line from its first window on that is newer than the committed one: EAGER, that has started; LAZY,
  that has fully arrived. It then commits to the newest such window. A key with an open commitment keeps its place, but
  is not in line.
- READY: the committed window has rows that have not left. Such keys are served in turn, each until it has none; only
  when there is none the next key in line is committed. IDLE: they have all left, but more may come.
- DONE: the window is closed and all its rows have left: its closer is let go, and the next commitment of the key waits
  until what it let go has been worked off.
- The enqueue buffer holds the rows from `floor` on: of the window that waits and of later ones. EAGER empties it on
  window starters, LAZY overwrites on window closers. The dequeue buffer holds what has not left of the committed
  window. They are one buffer: a row may be in both, and leaves it when neither needs it.
- No row of a window that may still be committed is ever dropped: what is let go of a window is all that was accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Microseconds, Times
from millrace.kernel.state import Changes
from millrace.kernel.updates.policies.key_cells import NONE
from millrace.kernel.updates.policies.row_counts import LET_GO
from millrace.kernel.updates.windows.single_rows import SingleRows
from millrace.kernel.updates.windows.window_cells import FAR, FINISHING, OPEN, SHUT, UNDER_WAY

_FEW = 2**12
"""Among so many keys the least is always looked for at once."""


@dataclass(frozen=True)
class Release:
    """Rows let go, each with the number of its commitment; and the closers behind them, with the ends of windows."""

    rows: pa.RecordBatch | None
    marks: Integers
    closers: Integers
    ends: Times


class Commitments(SingleRows):
    """Keys going through all their states."""

    @property
    def due(self) -> bool:
        """Whether something could leave now."""
        return bool(self._ready or self._finishing or len(self.line) or self._under_way)

    @property
    def wanted(self) -> Microseconds | None:
        """The least bound of the stream that may close something."""
        return self._least if self.tick is None and self._least < FAR else None

    @property
    def locations(self) -> tuple[int, int, int]:
        """How many locations are set aside, how many are in use, and the most of one key."""
        return self.buffers.allocated, self.buffers.used, int(self.buffers.counts.max())

    def grow(self, keys: int) -> None:
        """Have room for so many keys."""
        self.cells.grow(keys)
        self.buffers.grow(keys)

    # Dequeue

    def let_go(self, rows: int, now: Microseconds) -> Release | None:
        """Rows of one kind of step, at most so many: of committed windows, or of those that are committed now."""
        if self._finishing:
            return self._closers(None, np.empty(0, np.int64), self._take_finishing())
        if not rows:
            return None
        if not self._ready:
            self._commit(self.line.take(self._worth(rows)), now)
        return self._serve(rows) if self._ready else None

    def _take_finishing(self) -> Integers:
        keys = np.array(self._finishing, np.int64)
        self._finishing.clear()
        return keys

    def _worth(self, rows: int) -> int:
        """How many keys in line may fit into so many rows: every window has at least one."""
        mean = self.buffers.rows / max(len(self.line), 1)
        return max(1, min(rows, int(rows / max(mean, 1))))

    def _commit(self, keys: Integers, now: Microseconds) -> None:
        """Commit keys to their newest windows; they enter READY."""
        if not len(keys):
            return
        cells, spans = self.cells, self.spans
        cells.touch(keys)
        cells.commit(keys, now)
        cells.before[keys] = cells.end[keys]
        cells.start[keys] = spans.newest(cells.last[keys]) if self.eager else cells.ready[keys]
        cells.end[keys] = cells.start[keys] + spans.range
        cells.floor[keys] = cells.start[keys] + spans.slide
        cells.mark[keys] = np.arange(self._next_mark, self._next_mark + len(keys))
        self._next_mark += len(keys)
        cells.opened[keys], cells.progress[keys], cells.place[keys] = OPEN, 0, NONE
        cells.ahead[keys] = END_OF_TIME if self.eager else cells.following[keys]
        cells.ahead_tau[keys] = NONE
        held = self.buffers.held(keys)
        inside = self.inside(held.owners, held.times)
        cells.pending[keys] = np.bincount(held.places[inside], minlength=len(keys))
        self._serve_later(keys)

    def _serve(self, rows: int) -> Release:
        """Let rows of the keys under processing go, key by key."""
        cells = self.cells
        keys = np.array(list(islice(self._ready, rows)), np.int64)
        keys = keys[: int(np.searchsorted(np.cumsum(cells.pending[keys]), rows)) + 1]
        cells.touch(keys)
        held = self.buffers.held(keys)
        owners = held.owners
        leaving = np.flatnonzero(self.inside(owners, held.times) & (held.entries >= cells.progress[owners]))[:rows]
        owners, entries = owners[leaving], held.entries[leaving]
        self._released += len(entries)
        self._released_ever += len(entries)
        self.counts.add_all(LET_GO, held.ports[leaving][held.times[leaving] >= cells.before[owners]])
        found = self.rows.take(entries)
        np.maximum.at(cells.progress, owners, entries + 1)
        np.subtract.at(cells.pending, owners, 1)
        np.maximum.at(cells.gone, owners, held.times[leaving])
        served = keys[cells.pending[keys] == 0]
        for _ in range(len(served)):
            self._ready.popleft()
        cells.turn[served] = NONE
        complete = cells.end[served] <= self._bounds(served)
        if not complete.all():
            self._least = min(self._least, int(cells.end[served[~complete]].min()))
        self.sweep(keys, held)
        return self._closers(found, cells.mark[owners], served[complete])

    def _closers(self, rows: pa.RecordBatch | None, marks: Integers, keys: Integers) -> Release:
        """The keys are DONE once this has been worked off."""
        cells = self.cells
        cells.touch(keys)
        cells.opened[keys], cells.turn[keys] = UNDER_WAY, NONE
        self._under_way.extend(keys.tolist())
        return Release(rows, marks, cells.mark[keys], cells.end[keys])

    def rest(self, now: Microseconds) -> None:
        """All that was let go has been worked off."""
        if self._under_way:
            keys = np.array(self._under_way, np.int64)
            self._under_way.clear()
            self.cells.touch(keys)
            self.cells.deliver(keys, now)
            self.cells.opened[keys] = SHUT
            self._stand(keys)

    # What is known

    def low(self) -> Microseconds:
        """A bound of what may still leave, and of what is made of it: the bound of the stream, or less."""
        count = len(self.cells)
        if self._low < self.bound and (not self.due or count <= _FEW or 2 * self._released > count):
            self._low, self._released = self._least_start(), 0
        return min(self.bound, self._low)

    def _least_start(self) -> Microseconds:
        """Where the first of the windows starts that are under processing, wait, or have begun."""
        cells, some = self.cells, slice(len(self.cells))
        waits = cells.place[some] != NONE
        starts = [cells.start[some][cells.opened[some] == OPEN]]
        if self.eager:
            starts.append(cells.floor[some][waits])
        else:
            begun = cells.following[some]
            starts += [cells.ready[some][waits], begun[begun != END_OF_TIME] - self.spans.range]
        return min([int(each.min()) for each in starts if len(each)], default=END_OF_TIME)

    def next_wait(self, now: Microseconds) -> tuple[float, float, int]:
        """For how long the next key has waited, the time between two updates of it, and the rows of its window."""
        cells, key = self.cells, self._ready[0] if self._ready else self.line.first()
        if key is None:
            return 0, 0, 0
        taus = (int(cells.queue_tau[key]), int(cells.application_tau[key]))
        waited = max([now - tau for tau in taus if tau != NONE], default=0)
        interval = float(self._intervals(np.array([key]), now)[0])
        return waited, interval, int(cells.pending[key] or self.buffers.counts[key])

    def check(self) -> None:
        """Assert what always holds."""
        cells, keys = self.cells, np.arange(len(self.cells))
        held = self.buffers.held(keys)
        rows = held.owners, held.times, held.entries
        assert self.needed(*rows).all(), "a row is held that no window needs"
        assert len(self.rows) == len(held.entries) == self.buffers.rows, "rows and locations differ"
        left = self.left(*rows)
        assert int((~left).sum()) == self.counts.whole().waiting, "rows are not accounted for"
        assert (rows[1] <= cells.gone[rows[0]])[left].all(), "a row has left that is newer than those that have"
        waits = self.inside(*rows[:2]) & (rows[2] >= cells.progress[rows[0]]) & (cells.opened[rows[0]] == OPEN)
        assert (np.bincount(held.places[waits], minlength=len(keys)) == cells.pending[keys]).all(), (
            "pending rows differ"
        )

    # State

    def note(self) -> dict[str, Any]:
        """What is saved besides cells and rows."""
        return {
            "bound": self.bound,
            "mark": self._next_mark,
            "place": self._next_place,
            "cut": self._next_cut,
            "released": self._released_ever,
            "forgotten": self.forgotten(),
            "low": self._low,
            "left": self._released,
            "least": self._least,
        }

    def restore(
        self, stores: list[Changes], note: Mapping[str, Any], numbers: Callable[[pa.RecordBatch], Integers]
    ) -> None:
        """Go on from what was saved; `numbers` gives the key of each row."""
        cells, rows = stores
        self.restore_keys(cells, rows, note, numbers)
        self.bound, self._low = note["bound"], note["low"]
        self._next_mark, self._next_place = note["mark"], note["place"]
        self._next_cut, self._released_ever = note["cut"], note["released"]
        some = slice(len(self.cells))
        turn, place, opened = self.cells.turn[some], self.cells.place[some], self.cells.opened[some]
        turns = np.flatnonzero(turn >= 0)
        self._ready = deque(turns[np.argsort(turn[turns])].tolist())
        finishing = np.flatnonzero((turn <= FINISHING) & (turn != NONE))
        self._finishing = finishing[np.argsort(-turn[finishing])].tolist()
        self._under_way = np.flatnonzero(opened == UNDER_WAY).tolist()
        waits = np.flatnonzero(place != NONE)
        self._stand(waits[np.argsort(place[waits])])
        # As they were known, not as they are: what is asked for and promised by them must be the same again.
        self._released, self._least = note["left"], note["least"]
