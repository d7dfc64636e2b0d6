"""A system measured in a process of its own: its peak of memory, a limit of time, and no effect on other systems."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

from bench.measures.memory import Peak, end
from bench.systems.engines import Engine, Measured, PeerFailed, Task

LIMIT = 300.0
"""Seconds that a system has for a workload, with its start and its warm-up."""
_LOOK = 0.2


@dataclass(frozen=True)
class MeasuredAlone:
    """What was measured, and the memory of the process and all that it started, at most."""

    measured: Measured
    peak: int


def measured_alone(
    engine: Engine, task: Task, name: str, *, itself: bool = True, limit: float = LIMIT
) -> MeasuredAlone:
    """Measure a system in a Java and a Python of its own; `itself` is False if the first process is not counted.

    A system that dies or takes too long has failed: everything it started is ended.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_carry_out, args=(sender, engine, task, name))
    process.start()
    sender.close()
    assert process.pid is not None
    peak, latest = Peak(process.pid, itself=itself), time.monotonic() + limit
    try:
        while not receiver.poll(_LOOK):
            peak.look()
            if time.monotonic() > latest:
                raise PeerFailed(f"did not end within {limit:,.0f} s")
        received = _received(receiver)
    finally:
        if process.is_alive() and time.monotonic() > latest:
            end(process.pid)
        process.join()
    if isinstance(received, str):
        raise PeerFailed(received)
    return MeasuredAlone(received, peak.bytes)


def _carry_out(sender: Connection, engine: Engine, task: Task, name: str) -> None:
    try:
        sender.send(engine(task, name))
    except PeerFailed as error:
        sender.send(str(error))
    except Exception as error:  # whatever it is, it is recorded, and the other systems are measured
        traceback.print_exc()
        sender.send(f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}")


def _received(receiver: Connection) -> Measured | str:
    try:
        received: Measured | str = receiver.recv()
        return received
    except EOFError:
        return "died"
