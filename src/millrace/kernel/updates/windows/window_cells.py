"""What a queue of windows knows of each key: key cells in columns (002 section 7.1), and how stale each key is.

Rules:
- A window is known by its start; `NO_BOUND` stands for none so far, `END_OF_TIME` for the end of none to come.
- A key that waits has a `place`, one under processing a `turn`: numbers in the order of the queues they stand in.
- Staleness is the time since a tau. The area under it is booked when tau changes, so that at any moment it is what has
  been booked and half the square of the present staleness.
- Where windows are delivered late, what the application is `shown` lags behind: its tau changes when it is told so, and
  until then is the first of those that there were meanwhile.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds, Times
from millrace.kernel.updates.policies.key_cells import NONE, Cells

Areas = npt.NDArray[np.float64]
FAR = 2**62
"""Later than any row: what the end of time is to windows."""
SHUT, OPEN, UNDER_WAY = 0, 1, 2
"""A commitment: there is none, it is open, or its closer has been let go but not been worked off."""
FINISHING = -2
"""The turn of the first key whose window has been closed after all its rows had left; those of later ones are below."""

_FIELDS = {
    "last": NO_BOUND,
    "port": NONE,
    "floor": NO_BOUND,
    "start": NO_BOUND,
    "end": NO_BOUND,
    "before": NO_BOUND,
    "mark": NONE,
    "opened": 0,
    "progress": 0,
    "pending": 0,
    "gone": NO_BOUND,
    "ready": NO_BOUND,
    "delivered": NO_BOUND,
    "following": END_OF_TIME,
    "ahead": END_OF_TIME,
    "due": END_OF_TIME,
    "place": NONE,
    "turn": NONE,
    "updates": 0,
    "first": NONE,
    "queue_tau": NONE,
    "application_tau": NONE,
    "ahead_tau": NONE,
    "shown_tau": NONE,
    "shown_at": NONE,
}
_AREAS = ("queue_area", "application_area", "shown_area")
_NAMES = frozenset([*_FIELDS, *_AREAS])


class WindowCells(Cells):
    """A cell a key; its columns have their names."""

    last: Integers
    """The time of the newest accepted row, and the input it came by."""
    port: Integers
    floor: Integers
    """Rows from here on wait in the enqueue buffer."""
    start: Integers
    """The window that was committed to last, and the end of the one before it."""
    end: Integers
    before: Integers
    mark: Integers
    opened: Integers
    """How far its commitment is: SHUT, OPEN or UNDER_WAY."""
    progress: Integers
    """Entries of the committed window below this have left, and how many rows of it have not."""
    pending: Integers
    gone: Integers
    """The newest time of a row that has left."""
    ready: Integers
    """LAZY: the newest window that has fully arrived."""
    delivered: Integers
    following: Integers
    """Where the first window with a row ends that is later than the ready one, the committed one, the delivered one."""
    ahead: Integers
    due: Integers
    place: Integers
    turn: Integers
    updates: Integers
    """How often it has entered WAIT or was updated there."""
    first: Integers
    """When its first row arrived."""
    queue_tau: Integers
    application_tau: Integers
    ahead_tau: Integers
    """What the application's tau will be once the committed window has been delivered."""
    shown_tau: Integers
    """The application's tau by what it has been shown, and when that was last something else."""
    shown_at: Integers
    queue_area: Areas
    application_area: Areas
    shown_area: Areas

    def __init__(self) -> None:
        super().__init__()
        self.late = False
        """Whether windows are delivered when somebody says so (`show`)."""
        for name, filler in _FIELDS.items():
            self.add(name, filler)
        for name in _AREAS:
            self.add(name, 0, np.float64)

    def __getattr__(self, name: str) -> Integers:
        if name not in _NAMES:
            raise AttributeError(name)
        return self[name]

    def __len__(self) -> int:
        return self.count

    def note(self, port: int, keys: Integers, times: Times, arrivals: Times) -> None:
        """Know of rows of one input."""
        self.touch(keys)
        unseen = np.flatnonzero(self.first[keys] == NONE)
        self.first[keys[unseen[::-1]]] = arrivals[unseen[::-1]]
        np.add.at(self.updates, keys, 1)
        np.maximum.at(self.last, keys, times)
        self.port[keys] = port

    # Staleness

    def commit(self, keys: Integers, now: Microseconds) -> None:
        """Keys no longer wait: their queue staleness goes down to 0."""
        _book(self.queue_tau, self.queue_area, keys, np.full(len(keys), NONE), now)

    def deliver(self, keys: Integers, now: Microseconds) -> None:
        """The committed windows of keys have reached the application, or will be shown to it."""
        if self.late:
            self._catch(keys)
        _book(self.application_tau, self.application_area, keys, self.ahead_tau[keys], now)
        self.delivered[keys] = self.start[keys]
        self.due[keys] = self.ahead[keys]

    def show(self, at: Microseconds) -> None:
        """All windows that were delivered before have been shown to the application at a moment."""
        count = self.count
        self._catch(np.arange(count))
        keys = np.flatnonzero(self.shown_tau[:count] != self.application_tau[:count])
        self.touch(keys)
        _book(self.shown_tau, self.shown_area, keys, self.application_tau[keys], at)
        self.shown_at[keys] = at

    def _catch(self, keys: Integers) -> None:
        """Let what is shown of keys be stale if they are, though not before what was shown last."""
        keys = keys[(self.shown_tau[keys] == NONE) & (self.application_tau[keys] != NONE)]
        self.touch(keys)
        self.shown_tau[keys] = self.application_tau[keys]
        self.shown_area[keys] -= (
            _age(self.shown_tau[keys], np.maximum(self.shown_at[keys], self.shown_tau[keys])) ** 2 / 2
        )

    def queue_staleness(self, now: Microseconds) -> tuple[Areas, Areas]:
        """The queue staleness of each key: now, and on average since its first row."""
        return self._staleness(self.queue_tau, self.queue_area, now)

    def application_staleness(self, now: Microseconds) -> tuple[Areas, Areas]:
        """The application staleness of each key: now, and on average since its first row."""
        if not self.late:
            return self._staleness(self.application_tau, self.application_area, now)
        self._catch(np.arange(self.count))
        # Who asks now has been shown all that was delivered; the average counts it when that is told.
        return _age(self.application_tau[: self.count], now), self._staleness(self.shown_tau, self.shown_area, now)[1]

    def _staleness(self, tau: Integers, area: Areas, now: Microseconds) -> tuple[Areas, Areas]:
        count = self.count
        present = _age(tau[:count], now)
        lived = np.maximum(now - self.first[:count], 1).astype(np.float64)
        return present, (area[:count] + present**2 / 2) / lived

    def per_second(self, now: Microseconds) -> Areas:
        """How often each key is updated."""
        lived = np.maximum(now - self.first[: self.count], 1).astype(np.float64)
        return self.updates[: self.count] * 1e6 / lived


def _book(tau: Integers, area: Areas, keys: Integers, following: Integers, now: Microseconds) -> None:
    """Give keys another tau, and keep the area that ends with the one before."""
    area[keys] += (_age(tau[keys], now) ** 2 - _age(following, now) ** 2) / 2
    tau[keys] = following


def _age(tau: Integers, now: Microseconds | Times) -> Areas:
    ages: Areas = np.maximum(now - np.where(tau == NONE, now, tau), 0).astype(np.float64)
    return ages
