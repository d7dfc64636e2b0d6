"""A function of known cost: the middle of a quote, so many microseconds of work later."""

import time


def middle(bid: float, ask: float, micros: int) -> float:
    """The middle of bid and ask; works until the time is over, as a model of a price does."""
    until = time.perf_counter_ns() + micros * 1_000
    while time.perf_counter_ns() < until:
        pass
    return (bid + ask) / 2


def middle_asleep(bid: float, ask: float, micros: int) -> float:
    """The same, but sleeps meanwhile, as one does who asks another service."""
    time.sleep(micros / 1e6)
    return (bid + ask) / 2
