"""`python -m tests.mutation --count 40 progress stores joins updates`: which slips in the kernel no test would notice.

Rules:
- Slips are drawn by a seed, as many of each room. A slip is made in a forked process, in the code of a function.
- The tests of a room are run once without any slip, to learn which functions each of them calls and how long it takes.
- A slip is tried on the tests that call its function, the quickest first, until one fails or `--seconds` are used up.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import pickle
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType, FunctionType
from typing import Any

import pytest

from tests.mutation.slips import Slip, slips_of

SOURCE = Path("src").resolve()
PROPERTIES = {
    "progress": ("progress", "admission", "group_promises"),
    "stores": ("storage",),
    "joins": ("joins", "adaptive"),
    "updates": ("update_queue", "queue_accounting", "window_queue", "update_join", "timed_update_join"),
}
"""The tests in tests/property that are about a room, beside its unit tests."""
EVERYWHERE = (
    "tests/unit/kernel/test_operators.py",
    *(f"tests/simulation/test_seeds.py::test_every_promise_holds_under_faults[{first}]" for first in (1, 11)),
)
Function = tuple[str, str]
"""A file, and the name of a function in it."""


def main() -> int:
    """Try slips in every room that is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    # argparse holds the empty list itself to the choices.
    parser.add_argument("rooms", nargs="*", choices=[*PROPERTIES, []], metavar="ROOM")
    parser.add_argument("--count", type=int, default=40, metavar="N", help="how many slips in each room (default: 40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which slips are drawn (default: 1)")
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="tests for each slip (default: 20)")
    options = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "ci"
    for room in options.rooms or PROPERTIES:
        if os.fork() == 0:
            properties = [f"tests/property/test_{each}.py" for each in PROPERTIES[room]]
            paths = [f"tests/unit/kernel/{room}", *properties, *EVERYWHERE]
            chosen = "not spark and not long"
            run = MutationRun(room, options.count, options.seed, options.seconds)
            # What pytest prints is of no use here.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            pytest.main(["-p", "no:cacheprovider", "-m", chosen, *paths], plugins=[run])
            os._exit(0)
        os.wait()
    return 0


class MutationRun:
    """Instead of running the tests once, runs those that a slip may break, slip by slip."""

    def __init__(self, room: str, count: int, seed: int, seconds: float) -> None:
        self.room, self.seconds, self.failed = room, seconds, False
        slips = [slip for path in sorted((SOURCE / "millrace/kernel" / room).rglob("*.py")) for slip in slips_of(path)]
        self.slips = sorted(Random(seed).sample(slips, min(count, len(slips))), key=lambda each: (each.path, each.line))
        self.output = os.fdopen(os.dup(1), "w")
        self._tell(f"{room}: {len(self.slips)} of {len(slips)} slips")

    def _tell(self, line: str) -> None:
        print(line, file=self.output, flush=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = _few_of_each(session.items)
        known: dict[int, tuple[float, set[Function]]] = _forked(lambda: self._measured(items))[1]
        self._tell(f"{self.room}: {len(items)} tests, {sum(each[0] for each in known.values()):.0f} s")
        calling = defaultdict[Function, list[int]](list)
        for place in sorted(known, key=lambda place: known[place][0]):
            for function in known[place][1]:
                calling[function].append(place)
        verdicts = Counter[str]()
        for slip in self.slips:
            own = [(items[place], known[place][0]) for place in calling[str(slip.path), slip.function]]
            verdict, seconds = self._verdict(slip, own)
            verdicts[verdict] += 1
            where = f"{slip.path.relative_to(SOURCE / 'millrace/kernel')}:{slip.line}"
            self._tell(f"{verdict:10} {seconds:5.1f} s  {where}  {slip.function}:  {slip}")
        self._tell(f"{self.room}: {dict(verdicts)}")
        return True

    def _measured(self, items: list[pytest.Item]) -> dict[int, tuple[float, set[Function]]]:
        """Per test that passes how long it takes, and the functions of the room that it calls."""
        found: dict[int, tuple[float, set[Function]]] = {}
        for place, item in enumerate(items):
            called: set[Function] = set()
            root = str(SOURCE / "millrace/kernel" / self.room)

            def note(frame: FrameType, event: str, _: Any, called: set[Function] = called, root: str = root) -> None:
                code = frame.f_code
                if event == "call" and code.co_filename.startswith(root):
                    called.add((code.co_filename, code.co_qualname))

            self.failed, began = False, time.process_time()
            sys.setprofile(note)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.setprofile(None)
            if not self.failed:
                found[place] = time.process_time() - began, called
        return found

    def _verdict(self, slip: Slip, items: list[tuple[pytest.Item, float]]) -> tuple[str, float]:
        """What the tests say of a slip, and how long they took."""
        function = _function(slip)
        if not items or function is None:
            return "not called" if not items else "no place", 0.0

        def tried() -> bool:
            assert function is not None
            function.__code__ = slip.code()
            self.failed, left = False, self.seconds
            for item, seconds in items:
                if self.failed or left < 0:
                    break
                left -= seconds
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            return self.failed

        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        ended, noticed = _forked(tried, int(self.seconds * 3) + 10)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
        return ("noticed" if ended or noticed else "SURVIVED"), seconds


def _few_of_each(items: list[pytest.Item], most: int = 4) -> list[pytest.Item]:
    """The tests, of those with many parameters a few that are far apart."""
    by_name = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        by_name[item.nodeid.partition("[")[0]].append(item)
    return [item for each in by_name.values() for item in each[:: -(-len(each) // most)]]


def _function(slip: Slip) -> FunctionType | None:
    """The function that a slip is in; None if it cannot be reached by its name."""
    name = ".".join(slip.path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    owner: Any = importlib.import_module(name)
    *classes, last = slip.function.split(".")
    for each in classes:
        owner = vars(owner)[each]
    found = vars(owner).get(last)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, functools.cached_property):
        found = found.func
    found = getattr(found, "__wrapped__", getattr(found, "__func__", found))
    return found if isinstance(found, FunctionType) else None


def _forked(work: Callable[[], Any], seconds: int | None = None) -> tuple[int, Any]:
    """How a process of its own ended that does some work, and what it returned."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(1, 2)
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
        with os.fdopen(write, "wb") as stream:
            pickle.dump(work(), stream)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        content = stream.read()
    status = os.waitpid(child, 0)[1]
    return status, pickle.loads(content) if status == 0 else None


if __name__ == "__main__":
    sys.exit(main())
