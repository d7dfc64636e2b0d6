"""The frames of the last hour in bounded memory, and the curves that are drawn of them.

Rules:
- A frame is kept compressed. All frames together take at most `MOST_BYTES`, and reach back `REACH` seconds at most; the
  oldest go first.
- Curves are numbers by name, one per frame. There are at most `MOST_CURVES`; further names are left out.
- One thread adds frames; any thread may ask.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from threading import Lock
from typing import Any

from millrace.dashboard.frames import Frame

REACH = 3600
"""Seconds."""
MOST_BYTES = 32 * 2**20
MOST_CURVES = 256
_POINTS = 720
"""The most points of a curve that is asked for as a whole."""


@dataclass(frozen=True)
class _PackedFrame:
    number: int
    at: float
    packed: bytes
    values: array[float]
    """Of the curves that there were, in their order."""

    @property
    def size(self) -> int:
        return len(self.packed) + self.values.itemsize * len(self.values)


class FrameHistory:
    """The last frames, each under a number that grows."""

    def __init__(self, reach: float = REACH, most_bytes: int = MOST_BYTES) -> None:
        self._reach, self._most = reach, most_bytes
        self._frames: deque[_PackedFrame] = deque()
        self._bytes = 0
        self._names: dict[str, None] = {}
        self._lock = Lock()

    def add(self, number: int, at: float, frame: Frame) -> bytes:
        """Keep a frame, which came at a time in seconds; its JSON."""
        text = json.dumps({**frame, "number": number, "at": at}, separators=(",", ":")).encode()
        packed = zlib.compress(text, 1)
        with self._lock:
            values = {name: value for name, value in curve_values(frame) if self._is_drawn(name)}
            line = array("d", [values.get(name, nan) for name in self._names])
            self._frames.append(_PackedFrame(number, at, packed, line))
            self._bytes += self._frames[-1].size
            while len(self._frames) > 1 and (self._bytes > self._most or self._frames[0].at < at - self._reach):
                self._bytes -= self._frames.popleft().size
        return text

    def _is_drawn(self, name: str) -> bool:
        if name not in self._names and len(self._names) < MOST_CURVES:
            self._names[name] = None
        return name in self._names

    @property
    def size(self) -> int:
        """The bytes that it holds, about."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._frames)

    def frame(self, number: int) -> bytes | None:
        """The JSON of the last frame whose number is at most this one; of the first that is kept, if all are later."""
        with self._lock:
            frames = list(self._frames)
        if not frames:
            return None
        found = next((each for each in reversed(frames) if each.number <= number), frames[0])
        return zlib.decompress(found.packed)

    def curves(self) -> dict[str, Any]:
        """The numbers, times and values of all curves, thinned to what a screen can show."""
        with self._lock:
            frames = list(self._frames)
        step = -(-len(frames) // _POINTS) or 1
        # Counted from the newest, so that the last point is there.
        shown = frames[::-1][::step][::-1]
        lines = {name: [_at(each.values, place) for each in shown] for place, name in enumerate(self._names)}
        return {
            "numbers": [each.number for each in shown],
            "times": [each.at for each in shown],
            "values": {name: values for name, values in sorted(lines.items()) if any(v is not None for v in values)},
        }


def _at(values: array[float], place: int) -> float | None:
    """A value of a frame; None if it has none, or was made before there was such a curve."""
    return None if place >= len(values) or isnan(values[place]) else values[place]


def curve_values(frame: Frame) -> Iterator[tuple[str, float]]:
    """What is drawn over time: of each stream its rate and lag, of each query its rate, latency and staleness."""
    for name, stream in frame["streams"].items():
        yield from _some(f"stream/{name}", {"rate": stream["rate"], "lag": stream["lag"]})
    for name, query in frame["queries"].items():
        latency, queue = query["latency"] or {}, query["queue"] or {}
        drawn = {"rate": query["rate"], "p50": latency.get("p50"), "p99": latency.get("p99")}
        yield from _some(f"query/{name}", {**drawn, "staleness": queue.get("staleness")})
    yield "run/state_bytes", frame["state_bytes"]


def _some(prefix: str, values: dict[str, float | None]) -> Iterator[tuple[str, float]]:
    yield from ((f"{prefix}/{name}", value) for name, value in values.items() if value is not None)
