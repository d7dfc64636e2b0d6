"""`python -m tests.simulation --seeds 10000`: play seeds on all cores; `--seed 4711`: replay one, and make it small."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from multiprocessing import get_context

import pytest

from tests.simulation.seeded_faults import SEEDED
from tests.simulation.seeds import Verdict, replayed, tried

_EVERY = 10.0
"""Seconds between two lines of progress."""


def main() -> int:
    """Play what the command line asks for; 1 if a seed fails."""
    options = _options()
    if options.seed is not None:
        text = replayed(options.seed, most=0 if options.whole else 200)
        print(text)
        return 0 if text.endswith("holds") else 1
    if options.slips:
        return _find_slips(range(options.first, options.first + options.seeds))
    seeds = range(options.first, options.first + options.seeds)
    seen, failed, seconds, began, told = Counter[str](), list[Verdict](), 0.0, time.monotonic(), time.monotonic()
    with get_context("spawn").Pool(options.jobs) as pool:
        for number, verdict in enumerate(pool.imap_unordered(tried, seeds, chunksize=5), start=1):
            seen += verdict.seen
            seconds += verdict.seconds
            if verdict.failure is not None:
                failed.append(verdict)
                print(verdict, flush=True)
            if time.monotonic() - told > _EVERY or number == len(seeds):
                told = time.monotonic()
                print(f"{number} of {len(seeds)} seeds, {len(failed)} failed", file=sys.stderr, flush=True)
    for what, count in sorted(seen.items()):
        print(f"{count:8}  {what}")
    elapsed = time.monotonic() - began
    print(f"{len(seeds)} seeds, {len(failed)} failed, {elapsed:.0f} s, {seconds:.0f} s of processor time")
    return 1 if failed else 0


def _find_slips(seeds: range) -> int:
    """Print per seeded fault the first seed that finds it, and after how long; 1 if one is not found."""
    missed = 0
    for seeded in SEEDED:
        began = time.process_time()
        with pytest.MonkeyPatch.context() as patch:
            seeded(patch)
            found = next((verdict for seed in seeds if (verdict := tried(seed)).failure), None)
        missed += found is None
        what = "not found" if found is None else f"seed {found.seed}: {str(found.failure).splitlines()[0][:80]}"
        print(f"{seeded.__name__:36} {time.process_time() - began:5.1f} s  {what}", flush=True)
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, metavar="N", help="replay one seed, and show the least that fails")
    parser.add_argument(
        "--slips", action="store_true", help="say which seed finds each fault of seeded_faults.py first"
    )
    parser.add_argument("--whole", action="store_true", help="do not make a failing seed small")
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many to play (default: 200)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the first of them (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (default: all cores)")
    return parser.parse_args()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of names is part of what happens.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
