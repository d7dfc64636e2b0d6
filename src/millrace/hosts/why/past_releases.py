"""Why results came when they did: which promise released them, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from millrace.errors import RequestError, did_you_mean, listed
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Cause
from millrace.kernel.progress.released import PastRelease
from millrace.plan.explain.time_text import clock_text

Releases = Mapping[str, tuple[PastRelease, ...]]
"""By query what has released its last rows, the newest last."""
Unit = Literal["time", "number"]


def read_releases(data: Mapping[str, Iterable[Mapping[str, Any]]]) -> Releases:
    """Releases from plain data."""
    return {
        query: tuple(PastRelease(Cause(**each["release"]), each["rows"], each["at"]) for each in past)
        for query, past in data.items()
    }


def releases_of(query: str, releases: Releases) -> tuple[PastRelease, ...]:
    """Those of one query; raises if it does not tell them."""
    if query not in releases:
        known = f"{did_you_mean(query, releases)}{listed(releases)} can. " if releases else ""
        raise RequestError(
            f'query "{query}" cannot say what released its results',
            hint=f"{known}Write CREATE QUERY {query} WITH (released = 'on') AS SELECT ..., if it is no update query: "
            "no promise releases the rows of those, but the turn of their key.",
        )
    return releases[query]


def release_lines(query: str, past: Iterable[PastRelease], units: Mapping[str, Unit]) -> Iterator[str]:
    """What released the last rows of a query, a line each.

    >>> past = [PastRelease(Cause("b", "ets", 5_000_000), 2, 7_000_000)]
    >>> list(release_lines("q", past, {}))
    ['q: 2 rows at 1970-01-01 00:00:07, released by stream "b": an ETS advanced its bound to 1970-01-01 00:00:05']
    """
    found = [
        f"{query}: {each.rows:,} {'row' if each.rows == 1 else 'rows'} at {clock_text(each.at, exact=True)}, "
        f"released by {_words(each.release, units)}"
        for each in past
    ]
    yield from found or [f"{query}: no results yet"]


def _words(release: Cause, units: Mapping[str, Unit]) -> str:
    if not release.how:
        return "a promise from before it was traced"
    if release.how == "end" or release.bound == END_OF_TIME:
        return f'the end of stream "{release.stream}"'
    what = "an ETS" if release.how == "ets" else "a row"
    if release.bound == NO_BOUND:
        return f'stream "{release.stream}": {what}'
    bound = clock_text(release.bound, exact=True, unit=units.get(release.stream, "time"))
    return f'stream "{release.stream}": {what} advanced its bound to {bound}'
