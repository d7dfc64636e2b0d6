"""What a seed comes to: its scenario is played and held to the oracle; a failing one is made small and shown."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import dataclass

from millrace.testing.simulation.scenario import Scenario, played, scenario_text
from millrace.testing.simulation.shrinking import shrunk
from tests.simulation.networks import made
from tests.simulation.oracle import check


@dataclass(frozen=True)
class Verdict:
    """What became of a seed: what it had, how long it took, and why it failed."""

    seed: int
    seen: Counter[str]
    seconds: float
    failure: str | None = None

    def __str__(self) -> str:
        return f"seed {self.seed} failed: {self.failure}\nreplay it: python -m tests.simulation --seed {self.seed}"


def tried(seed: int) -> Verdict:
    """Play a seed."""
    began, seen = time.process_time(), Counter[str]()
    try:
        scenario = made(seed)
        seen.update(scenario.features)
        outcome = played(scenario.scenario)
        seen += outcome.seen
        check(scenario.scenario, outcome)
    # Whatever fails is a finding, an assertion of the kernel's among it.
    except Exception as error:
        return Verdict(seed, seen, time.process_time() - began, f"{type(error).__name__}: {error}")
    return Verdict(seed, seen, time.process_time() - began)


def failure_of(scenario: Scenario) -> Exception | None:
    """Why a scenario fails; None if it does not."""
    try:
        check(scenario, played(scenario))
    except Exception as error:
        return error
    return None


def replayed(seed: int, *, most: int = 200) -> str:
    """A seed played again: that it holds, or a small scenario that fails as it does, and how; after so many tries."""
    scenario = made(seed).scenario
    error = failure_of(scenario)
    if error is None:
        return f"seed {seed} holds"
    scenario = shrunk(scenario, lambda other: type(failure_of(other)) is type(error), most=most)
    error = failure_of(scenario)
    assert error is not None
    return f"{scenario_text(scenario)}\n{''.join(traceback.format_exception(error)[-6:])}seed {seed} failed: {error}"
