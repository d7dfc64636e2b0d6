"""Pages: which locations of memory are in use, allocated and released on demand (002, section 7.1).

Rules:
- A page is a run of `page` locations. What is handed out is a zone of `zone` consecutive ones, under a number: one
  location for a row, more for rows that follow each other. A zone never crosses pages; one that is longer than a page
  has a page of its own length.
- The empty-locations pool lists the pages in use that have free zones. They are filled, page by page, before a new page
  is taken from the page pool.
- A page whose zones are all free goes back to the page pool at once.
- The number of a zone is a place in arrays of its owner, which need `capacity` places.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.columns.integers import Integers, distinct, grown

_FIRST_PAGES = 16
"""For how many pages there is room at the beginning."""


class Pages:
    """Zones in pages, handed out on demand.

    >>> pages = Pages(page=4)
    >>> zones = pages.allocate(5)
    >>> zones.tolist(), pages.pages, pages.allocated
    ([0, 1, 2, 3, 4], 2, 5)
    >>> pages.release(zones[[1, 4]])
    >>> pages.allocate(2).tolist(), pages.pages
    ([1, 4], 2)
    """

    def __init__(self, page: int = 16, zone: int = 1) -> None:
        assert page > 0 and zone > 0
        self.page, self.zone = page, zone
        self._per_page = max(page // zone, 1)
        self._clear()

    def _clear(self) -> None:
        self._taken = np.zeros(_FIRST_PAGES * self._per_page, np.bool_)
        self._counts = np.zeros(_FIRST_PAGES, np.int64)
        """How many zones of each page are taken."""
        self._open: list[int] = []
        """The empty-locations pool, from the last page on, each once. What is full or empty by then is skipped."""
        self._listed = np.zeros(_FIRST_PAGES, np.bool_)
        self._pool: list[int] = []
        """The page pool: pages that came back."""
        self._made = self._in_use = 0

    @property
    def allocated(self) -> int:
        """How many locations have been handed out and not been given back, as the pages have them."""
        return int(self._counts.sum()) * self.zone

    @property
    def pages(self) -> int:
        """How many pages are in use."""
        return self._in_use

    @property
    def capacity(self) -> int:
        """A number above that of every zone that has been handed out; it grows by doubling."""
        return len(self._taken)

    def allocate(self, count: int) -> Integers:
        """The numbers of some zones, from now on in use."""
        if count == 1:
            return np.array([self._next()], np.int64)
        parts = []
        while count > 0:
            zones = self._from_open(count) if self._open else self._from_pool(count)
            parts.append(zones)
            count -= len(zones)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def release(self, zones: Integers) -> None:
        """Take zones back, each once."""
        if len(zones) == 1:
            self._release_one(int(zones[0]))
            return
        assert bool(self._taken[zones].all())
        self._taken[zones] = False
        pages = zones // self._per_page
        np.subtract.at(self._counts, pages, 1)
        pages = distinct(pages)
        empty = self._counts[pages] == 0
        self._pool.extend(pages[empty].tolist())
        self._in_use -= int(empty.sum())
        self._list(pages[~empty])

    def restore(self, zones: Integers) -> None:
        """Go on with the zones that their owners have."""
        self._clear()
        pages = zones // self._per_page
        self._make_pages(int(pages.max(initial=-1)) + 1)
        self._taken[zones] = True
        np.add.at(self._counts, pages, 1)
        empty = self._counts[: self._made] == 0
        self._pool = np.flatnonzero(empty)[::-1].tolist()
        self._in_use = self._made - len(self._pool)
        self._list(np.flatnonzero(~empty)[::-1])

    def _next(self) -> int:
        """One zone: the first free one of the page that is being filled."""
        page = self._page_at_hand()
        begin = page * self._per_page
        zone = begin + int(self._taken[begin : begin + self._per_page].argmin())
        self._taken[zone] = True
        self._counts[page] += 1
        return zone

    def _page_at_hand(self) -> int:
        """A page that has a free zone, in the empty-locations pool; from the page pool if there is none."""
        while self._open:
            page = self._open[-1]
            if 0 < self._counts[page] < self._per_page:
                return page
            self._listed[page] = False
            self._open.pop()
        self._list(self._new_pages(1))
        return self._open[0]

    def _release_one(self, zone: int) -> None:
        assert self._taken[zone]
        page = zone // self._per_page
        self._taken[zone] = False
        self._counts[page] -= 1
        if not self._counts[page]:
            self._pool.append(page)
            self._in_use -= 1
        elif not self._listed[page]:
            self._open.append(page)
            self._listed[page] = True

    def _from_open(self, count: int) -> Integers:
        """At most `count` zones of the pages in the empty-locations pool, page by page."""
        pages = np.array(self._open[: -count - 1 : -1], np.int64)
        del self._open[-len(pages) :]
        self._listed[pages] = False
        counts = self._counts[pages]
        pages = pages[(counts > 0) & (counts < self._per_page)]
        needed = int(np.searchsorted(np.cumsum(self._per_page - self._counts[pages]), count)) + 1
        self._list(pages[needed:][::-1])
        pages = pages[:needed]
        rows, places = np.nonzero(~self._taken.reshape(-1, self._per_page)[pages])
        rows, places = rows[:count], places[:count]
        zones: Integers = pages[rows] * self._per_page + places
        self._taken[zones] = True
        self._counts[pages] += np.bincount(rows, minlength=len(pages))
        self._list(pages[self._counts[pages] < self._per_page])
        return zones

    def _from_pool(self, count: int) -> Integers:
        """`count` zones of new pages."""
        pages = self._new_pages(-(-count // self._per_page))
        zones = (pages[:, None] * self._per_page + np.arange(self._per_page)).ravel()[:count]
        self._taken[zones] = True
        self._counts[pages] = self._per_page
        self._counts[pages[-1]] -= len(pages) * self._per_page - count
        self._list(pages[-1:][self._counts[pages[-1:]] < self._per_page])
        return zones

    def _new_pages(self, count: int) -> Integers:
        """Pages of the page pool, which makes more of them if it has to."""
        back = self._pool[: -count - 1 : -1]
        del self._pool[len(self._pool) - len(back) :]
        first = self._made
        self._make_pages(first + count - len(back))
        self._in_use += count
        return np.concatenate([np.array(back, np.int64), np.arange(first, self._made)])

    def _list(self, pages: Integers) -> None:
        """Put pages into the empty-locations pool that are not there; the last is the first to be filled."""
        pages = pages[~self._listed[pages]]
        self._listed[pages] = True
        self._open.extend(pages.tolist())

    def _make_pages(self, count: int) -> None:
        """Have `count` pages in all, if there are fewer."""
        self._made = max(self._made, count)
        self._counts = grown(self._counts, self._made, 0)
        self._listed = grown(self._listed, self._made, False)
        self._taken = grown(self._taken, self._made * self._per_page, False)
