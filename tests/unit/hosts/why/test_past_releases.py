from __future__ import annotations

import pytest

from millrace.errors import RequestError
from millrace.hosts.why.past_releases import read_releases, release_lines, releases_of
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Cause
from millrace.kernel.progress.released import PastRelease


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (Cause("a", "data", 1_000_000), 'stream "a": a row advanced its bound to 1970-01-01 00:00:01'),
        (Cause("a", "ets", 1_000_000), 'stream "a": an ETS advanced its bound to 1970-01-01 00:00:01'),
        (Cause("a", "end", END_OF_TIME), 'the end of stream "a"'),
        (Cause("a", "data", NO_BOUND), 'stream "a": a row'),
        (Cause("n", "data", 7), 'stream "n": a row advanced its bound to 7'),
        (Cause("", "", NO_BOUND), "a promise from before it was traced"),
    ],
)
def test_a_release_is_told_in_words(release: Cause, words: str) -> None:
    (line,) = release_lines("q", [PastRelease(release, 1, 2_000_000)], {"n": "number"})
    assert line == f"q: 1 row at 1970-01-01 00:00:02, released by {words}"


def test_a_query_without_results_says_so_and_one_that_does_not_tell_is_refused() -> None:
    assert list(release_lines("q", (), {})) == ["q: no results yet"]
    with pytest.raises(RequestError, match='query "p" cannot say') as refused:
        releases_of("p", {"q": ()})
    assert "released = 'on'" in refused.value.hint


def test_releases_come_back_from_plain_data() -> None:
    data = {"q": [{"release": {"stream": "a", "how": "ets", "bound": 5}, "rows": 3, "at": 9}]}
    assert read_releases(data) == {"q": (PastRelease(Cause("a", "ets", 5), 3, 9),)}
