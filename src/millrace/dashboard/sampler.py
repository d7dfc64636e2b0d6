"""A thread that looks at a run every second, and keeps what it saw for those who follow.

Rules:
- A look is made between two steps of the run; how many follow makes no difference to it.
- The newest frame is encoded once. A follower that is slow gets the newest frame when it is ready for one, never a
  backlog.
- The picture is made again when the network has changed.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

from millrace.dashboard.frame_history import FrameHistory
from millrace.dashboard.frames import Frame, Observation, frame_of
from millrace.plan.explain.query_picture import query_picture
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

EVERY = 1.0
"""Seconds between two looks."""
_RATE_OVER = 3
"""How many moments before the newest the rates are counted from."""


class Sampler:
    """Frames of a run, from its `look`, until it is closed; `network` gives the queries that run now."""

    def __init__(self, look: Callable[[], Observation], network: Callable[[], QueryNetwork]) -> None:
        self.history = FrameHistory()
        self._look, self._network, self._every = look, network, EVERY
        self._news = Condition()
        self._newest: tuple[int, bytes] = 0, b""
        self._closed = False
        self.trouble: str | None = None
        """Why the last look failed, if it did."""
        self._recent: deque[Frame] = deque(maxlen=_RATE_OVER)
        self._drawn: QueryNetwork | None = None
        self._names: dict[str, str] = {}
        self._picture: tuple[int, bytes] = 0, b"{}"
        self._draw()
        self._thread = Thread(target=self._run, name="millrace-page", daemon=True)
        self._thread.start()

    @property
    def picture(self) -> tuple[int, bytes]:
        """The number of the present picture, and its JSON."""
        return self._picture

    def after(self, number: int, patience: float) -> tuple[int, bytes] | None:
        """The newest frame with a greater number, and that number; None if none came in so many seconds."""
        with self._news:
            self._news.wait_for(lambda: self._newest[0] > number or self._closed, patience)
            return self._newest if self._newest[0] > number else None

    @property
    def newest(self) -> int:
        """The number of the newest frame."""
        return self._newest[0]

    @property
    def closed(self) -> bool:
        """True if no frame will follow."""
        return self._closed

    def close(self) -> None:
        """Take a last frame, and end."""
        if not self._closed:
            self._sample()
        with self._news:
            self._closed = True
            self._news.notify_all()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            self._sample()
            # A look that took long is not made up for.
            due = max(due + self._every, time.monotonic())
            with self._news:
                self._news.wait_for(lambda: self._closed, due - time.monotonic())

    def _sample(self) -> None:
        try:
            self._draw()
            self._put(self._look())
            self.trouble = None
        except Exception as error:
            # On Spark a look reads the checkpoint: that may fail, and the next look not.
            self.trouble = f"{type(error).__name__}: {error}"

    def _put(self, seen: Observation) -> None:
        frame = frame_of(seen, self._names, self._recent[0] if self._recent else None)
        if not self._recent or frame["as_of"] != self._recent[-1]["as_of"]:
            # On Spark many frames are of one commit.
            self._recent.append(frame)
        with self._news:
            number = self._newest[0] + 1
            text = self.history.add(number, time.time(), {**frame, "picture": self._picture[0]})
            self._newest = number, text
            self._news.notify_all()

    def _draw(self) -> None:
        network = self._network()
        if network is self._drawn:
            return
        picture = query_picture(physical(network))
        self._names = {other: node.name for node in picture.nodes for other in node.on_spark}
        self._drawn = network
        data: dict[str, Any] = {**picture.data(), "queries": _queries(network)}
        number = self._picture[0] + 1
        self._picture = number, json.dumps({**data, "number": number}, separators=(",", ":")).encode()


def _queries(network: QueryNetwork) -> dict[str, Any]:
    """The queries, with their sinks, columns and options."""
    return {
        each.name: {
            "sink": each.sink.connector.format,
            "columns": list(each.root.schema.names),
            "options": dict(each.options),
        }
        for each in network.queries
    }
