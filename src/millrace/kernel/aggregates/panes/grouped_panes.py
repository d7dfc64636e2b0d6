"""What a window aggregate holds when groups have bounds of their own: panes found by group.

Rules:
- A unit is all that the groups of one hash hold; a bound of single groups costs what their units hold.
- Each row of partials says which window that holds it is to be reported next, so a window is reported once, whichever
  bound closes it. No bound of a group need be kept: a row that comes later is at or above it, so its windows end later.
- A calendar says which units a bound of the whole stream may close: the next window of each unit. Entries that other
  bounds have overtaken stay in it; when these are many, it is written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.panes import for_windows, partials_together
from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.hashing import Hashes, hashes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import GroupPunctuation, Microseconds, concat_tables
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns
from millrace.kernel.stores.sorted_runs import SortedRuns

_NEXT = "__next"
"""The next window that a row of partials is to be reported in."""
_Lasts = Callable[[pa.Table], Integers]
"""The last window that is closed, for each row of partials."""
_NextWindows = tuple[Hashes, Integers]
"""Units in order of hash, and the next window of each."""

_NEVER = -(2**62)
"""A window before any that a row can be in."""
_FEW = 1024
"""Calendar entries that are never too many."""


class GroupedPanes:
    """Partial aggregates by pane and keys, closed by bounds of the stream and of the groups in the columns `groups`."""

    def __init__(self, partials: Partials, groups: Sequence[str]) -> None:
        self.partials = partials
        self.geometry = partials.geometry
        self.groups = list(groups)
        self._units = KeyedRuns()
        self._calendar = SortedRuns(_NEXT, concat_tables)
        self._open: Counter[int] = Counter()
        """How many units have each window as their next."""

    def __len__(self) -> int:
        return len(self._units)

    @property
    def nbytes(self) -> int:
        """The memory of all segments."""
        return self._units.nbytes + self._calendar.nbytes

    def add(self, rows: Sequence[pa.RecordBatch], made: Sequence[pa.Table]) -> None:
        """Keep tagged rows, and partials that a lower level made."""
        new = partials_together(self.partials, rows, made)
        hashes = hashes_of(new, self.groups)
        following, _ = self.geometry.windows_of(new.column(PANE).to_numpy())
        new = new.append_column(HASH, pa.array(hashes)).append_column(_NEXT, pa.array(following))
        held = self._units.get(hashes)
        by = [PANE, *self.partials.keys, HASH, _NEXT]
        self._replace(
            hashes, held, self.partials.merged_by([*(each.select(new.schema.names) for each in held), new], by)
        )

    def next_end(self, gathered: int | None) -> Microseconds | None:
        """The end of the first window that holds a row; a pane that has not been added yet counts."""
        first = [] if gathered is None else [self.geometry.first_window(gathered)]
        window = min([*first, *self._open], default=None)
        return None if window is None else self.geometry.end(window)

    def close(self, until: Microseconds) -> Iterator[pa.Table]:
        """The windows that end at or before a bound of the stream, each once."""
        last = self.geometry.last_closed(until)
        due = self._calendar.between(None, last)
        self._calendar.drop(last)
        if due:
            hashes = np.unique(concat_tables(due).column(HASH).to_numpy())
            held = self._units.get(hashes)
            yield from self._closing(hashes, held, lambda rows: np.full(rows.num_rows, last))

    def closes(self, punctuation: GroupPunctuation, pane: int) -> bool:
        """True if one of the bounds of single groups closes a window that holds a pane."""
        return self.geometry.first_window(pane) <= self.geometry.last_closed(int(punctuation.until.max()))

    def close_groups(self, punctuation: GroupPunctuation) -> Iterator[pa.Table]:
        """The windows that end at or before the bounds of single groups, each once."""
        window = min(self._open, default=None)
        if window is None or window > self.geometry.last_closed(int(punctuation.until.max())):
            return
        hashes = hashes_of(punctuation.keys, punctuation.keys.schema.names)
        held = self._units.get(hashes)
        yield from self._closing(hashes, held, lambda rows: self._promised(rows, punctuation))

    def passed(self, until: Microseconds) -> None:
        """Every window up to a bound has been reported; rows know that themselves."""

    def changes(self) -> Changes:
        """What changed since the last save."""
        return combined([self._units.changes(), self._calendar.changes()], {})

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        units, calendar = separated(changes)
        self._units.restore(units)
        self._calendar.restore(calendar)
        _, following = _next_windows(self._units.whole())
        self._count(following, 1)

    def _closing(self, hashes: Hashes, held: list[pa.Table], lasts: _Lasts) -> Iterator[pa.Table]:
        """Report the windows of some units up to each row's last one, and keep what later ones need."""
        if not held:
            return
        rows = concat_tables(held)
        last, following = lasts(rows), rows.column(_NEXT).to_numpy()
        _, highest = self.geometry.windows_of(rows.column(PANE).to_numpy())
        if not (following <= last).any():
            return
        yield self.partials.merged(
            [for_windows(rows.drop_columns([HASH, _NEXT]), following, np.minimum(highest, last))]
        )
        after = rows.set_column(
            rows.schema.get_field_index(_NEXT), _NEXT, pa.array(np.maximum(following, last + 1))
        ).filter(pa.array(highest > last))
        self._replace(hashes, held, after)

    def _promised(self, rows: pa.Table, punctuation: GroupPunctuation) -> Integers:
        """The last window that each row's own group has closed."""
        named, names = punctuation.keys.num_rows, self.groups
        types = [rows.schema.field(name).type for name in names]
        keys = [column.cast(kind) for column, kind in zip(punctuation.keys.columns, types, strict=True)]
        columns = [
            pa.concat_arrays([key, rows.column(name).combine_chunks()]) for key, name in zip(keys, names, strict=True)
        ]
        codes, first = codes_of(columns, named + rows.num_rows)
        closed = np.full(len(first), _NEVER)
        np.maximum.at(closed, codes[:named], self.geometry.closed_by(punctuation.until))
        return closed[codes[named:]]

    def _replace(self, hashes: Hashes, before: list[pa.Table], after: pa.Table) -> None:
        """Put other rows in the place of some units', and note their next windows."""
        self._units.put(hashes, after)
        old, new = _next_windows(before), _next_windows([after])
        self._count(old[1], -1)
        self._count(new[1], 1)
        self._enter(*_changed(old, new))

    def _enter(self, units: Hashes, following: Integers) -> None:
        """Add entries to the calendar; write it again when most of it has been overtaken."""
        if len(self._calendar) + len(units) > 2 * len(self._units) + _FEW:
            self._calendar.clear()
            units, following = _next_windows(self._units.whole())
        self._calendar.add(pa.table({_NEXT: following, HASH: units}))

    def _count(self, following: Integers, sign: int) -> None:
        windows, counts = np.unique(following, return_counts=True)
        for window, count in zip(windows.tolist(), counts.tolist(), strict=True):
            self._open[window] += sign * count
            if not self._open[window]:
                del self._open[window]


def _next_windows(tables: Sequence[pa.Table]) -> _NextWindows:
    """The next window of each unit."""
    if not tables:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = concat_tables(tables)
    units, places = np.unique(rows.column(HASH).to_numpy(), return_inverse=True)
    following = np.full(len(units), np.iinfo(np.int64).max)
    np.minimum.at(following, places, rows.column(_NEXT).to_numpy())
    return units, following


def _changed(old: _NextWindows, new: _NextWindows) -> _NextWindows:
    """The units whose next window is another than before."""
    units, following = new
    same = np.zeros(len(units), np.bool_)
    if len(old[0]):
        places = np.minimum(np.searchsorted(old[0], units), len(old[0]) - 1)
        same = (old[0][places] == units) & (old[1][places] == following)
    return units[~same], following[~same]
