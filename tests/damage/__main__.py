"""Many cases of damage, and the table of what became of them: `python -m tests.damage --on local --cases 2000`."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.damage import by_hand, on_local
from tests.damage.damages import KINDS
from tests.damage.networks import NAMES, write_inputs
from tests.damage.on_local import OUTCOMES, Case


def cases(host: str, count: int, seed: int, folder: Path) -> Iterable[Case]:
    """So many cases on a host, over all networks in turn."""
    kind = on_local if host == "local" else by_hand
    write_inputs(folder / "inputs")
    sites = [kind.prepared(folder / f"site-{number}", name) for number, name in enumerate(NAMES)]
    for number in range(count):
        place = folder / "case"
        yield kind.tried(sites[number % len(sites)], place, random.Random(seed * 1_000_003 + number))
        shutil.rmtree(place)


def table(found: Iterable[Case]) -> str:
    """The outcomes of each kind of damage."""
    counted = Counter((case.kind, case.outcome) for case in found)
    lines = [f"{'':8}" + "".join(f"{outcome:>16}" for outcome in OUTCOMES)]
    for kind in KINDS:
        lines.append(f"{kind:8}" + "".join(f"{counted[kind, outcome]:>16}" for outcome in OUTCOMES))
    sums = (sum(counted[kind, outcome] for kind in KINDS) for outcome in OUTCOMES)
    return "\n".join([*lines, f"{'all':8}" + "".join(f"{each:>16}" for each in sums)])


def main() -> None:
    """Print the table, and every case that is neither detected nor harmless."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=("local", "by-hand"), default="local")
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-damage-") as folder:
        found = []
        for number, case in enumerate(cases(options.on, options.cases, options.seed, Path(folder))):
            found.append(case)
            if case.outcome not in ("detected", "harmless"):
                print(f"{number} {case.network}, {case.kind} {case.file}: {case.outcome}: {case.said}", flush=True)
    print(table(found))
    sys.exit(any(case.outcome not in ("detected", "harmless") for case in found))


if __name__ == "__main__":
    main()
