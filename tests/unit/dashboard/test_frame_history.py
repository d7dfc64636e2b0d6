"""The last hour in bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

from millrace.dashboard.frame_history import MOST_CURVES, FrameHistory


def frame(rate: float = 1.0, streams: int = 1, filler: str = "") -> dict[str, Any]:
    found = {f"s{number}": {"rate": rate, "lag": None} for number in range(streams)}
    return {"streams": found, "queries": {}, "state_bytes": 0, "verdict": [filler]}


def test_frames_are_found_by_number_and_the_nearest_before_where_one_is_missing() -> None:
    history = FrameHistory()
    for number in (1, 2, 5):
        history.add(number, float(number), frame(rate=number))
    assert [json.loads(history.frame(number) or b"")["number"] for number in (0, 2, 4, 9)] == [1, 2, 2, 5]
    assert FrameHistory().frame(1) is None


def test_an_hour_of_frames_stays_and_earlier_ones_go() -> None:
    history = FrameHistory(reach=3600)
    for second in range(2 * 3600):
        history.add(second, float(second), frame())
    assert len(history) == 3601
    assert json.loads(history.frame(0) or b"")["number"] == 3599


def test_memory_is_bounded_whatever_frames_hold() -> None:
    history, sizes = FrameHistory(most_bytes=50_000), []
    for second in range(600):
        history.add(second, float(second), frame(filler=str(list(range(second % 50 * 20)))))
        sizes.append(history.size)
    assert max(sizes) <= 50_000 and 1 < len(history) < 600


def test_what_it_says_it_holds_is_what_it_holds() -> None:
    tracemalloc.start()
    history = FrameHistory()
    for second in range(100):
        history.add(second, float(second), frame(rate=second + 0.5, streams=300))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert history.size < held < 1.5 * history.size


def test_a_curve_that_begins_later_or_ends_has_gaps() -> None:
    history = FrameHistory()
    for number, streams in enumerate((1, 2, 1)):
        history.add(number, float(number), frame(streams=streams))
    values = history.curves()["values"]
    assert values["stream/s0/rate"] == [1.0, 1.0, 1.0] and values["stream/s1/rate"] == [None, 1.0, None]


def test_curves_have_the_newest_point_and_no_more_than_a_screen_shows() -> None:
    history = FrameHistory()
    for second in range(3000):
        history.add(second, float(second), frame(rate=second))
    curves = history.curves()
    assert len(curves["times"]) <= 720 and curves["numbers"][-1] == 2999
    assert curves["values"]["stream/s0/rate"][-1] == 2999
    assert {len(values) for values in curves["values"].values()} == {len(curves["times"])}


def test_a_network_of_a_thousand_streams_has_only_so_many_curves() -> None:
    history = FrameHistory()
    history.add(1, 1.0, frame(streams=1000))
    assert len(history.curves()["values"]) <= MOST_CURVES
