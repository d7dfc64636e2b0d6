"""The thread that looks at a run: followers get the newest frame, and the picture follows the network."""

from __future__ import annotations

import gc
import itertools
import json
import time
import tracemalloc
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace

import pytest

import millrace as mr
from millrace.api.http.server import Server
from millrace.dashboard import sampler as sampling
from tests.e2e.commands import wait_for
from tests.unit.api.pushed_run import pushed_run


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Iterator[mr.Handle]:
    monkeypatch.setattr(sampling, "EVERY", 0.02)
    with pushed_run() as handle:
        yield handle


@pytest.fixture
def server(handle: mr.Handle) -> Server:
    return handle.serve()


def test_a_follower_that_is_slow_gets_the_newest_frame(server: Server) -> None:
    first = server.sampler.after(0, 10)
    assert first is not None
    wait_for(lambda: server.sampler.after(first[0] + 20, 0.1))
    second = server.sampler.after(first[0], 10)
    assert second is not None and second[0] > first[0] + 20
    assert json.loads(second[1])["number"] == second[0]


def test_the_picture_is_drawn_again_when_a_query_is_added(server: Server, handle: mr.Handle) -> None:
    before, _ = server.sampler.picture
    handle.add("ADD QUERY more AS SELECT k FROM s")
    wait_for(lambda: server.sampler.picture[0] > before)
    assert "more" in json.loads(server.sampler.picture[1])["queries"]


def test_a_look_that_fails_is_told_and_the_next_one_is_made(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    mended, look = Event(), server.reader.observe

    def until_mended() -> object:
        if mended.is_set():
            return look()
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(server.sampler, "_look", until_mended)
    wait_for(lambda: server.sampler.trouble == "RuntimeError: dictionary changed size during iteration")
    mended.set()
    assert server.sampler.after(server.sampler.newest, 10) is not None
    wait_for(lambda: server.sampler.trouble is None)


def test_the_end_of_a_run_is_told_with_a_last_frame(server: Server, handle: mr.Handle) -> None:
    handle.stop()
    assert server.sampler.closed
    assert server.sampler.after(0, 0) is not None


@pytest.mark.slow
def test_memory_is_flat_from_the_first_hour_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other at once, and each is a second later by the clock of frames."""
    seconds = itertools.count()
    clock = SimpleNamespace(time=lambda: float(next(seconds)), monotonic=time.monotonic)
    monkeypatch.setattr(sampling, "EVERY", 0.0)
    monkeypatch.setattr(sampling, "time", clock)
    held = []
    with pushed_run() as handle:
        tracemalloc.start()
        try:
            server = handle.serve()
            for hour in (1, 2):
                wait_for(lambda hour=hour: server.sampler.newest > hour * 3_700)
                # While a frame is made, more is held: a third of a megabyte to compress it.
                monkeypatch.setattr(server.sampler, "_every", 0.1)
                gc.collect()
                held.append(min(tracemalloc.get_traced_memory()[0] for _ in range(100) if not time.sleep(0.002)))
                monkeypatch.setattr(server.sampler, "_every", 0.0)
        finally:
            tracemalloc.stop()
        assert len(server.sampler.history) == 3_601
    assert held[1] < 1.1 * held[0]
