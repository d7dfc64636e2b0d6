from __future__ import annotations

import time

import pytest

from millrace.connectors.retries import Retries


def test_pauses_double_up_to_two_seconds_and_none_begins_that_would_end_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: sum(pauses))
    monkeypatch.setattr(time, "sleep", pauses.append)
    retries = Retries(10)
    while not retries.are_over:
        retries.pause()
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2])
    assert Retries(0).are_over
