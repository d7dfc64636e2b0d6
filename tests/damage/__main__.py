"""Many cases of damage, and the table of what became of them: `python -m tests.damage --on local --cases 2000`.

`by-hand` is our parts of Spark without Spark; `spark` is Spark itself with damage to our files, `spark-own` to its own.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from millrace.hosts.spark.session.session import open_session
from tests.damage import by_hand, on_local, on_spark
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


def cases_on_spark(session: SparkSession, count: int, seed: int, folder: Path, *, of_spark: bool) -> Iterator[Case]:
    """So many cases on Spark itself, where one takes seconds; the process changes into a folder of theirs."""
    write_inputs(folder / "inputs")
    sites: dict[str, on_spark.Site] = {}
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        if name not in sites:
            sites[name] = on_spark.prepared(folder / f"site-{number}", name, session)
        yield on_spark.tried(sites[name], random.Random(seed * 1_000_003 + number), of_spark=of_spark)


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
    parser.add_argument("--on", choices=("local", "by-hand", "spark", "spark-own"), default="local")
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-damage-") as folder:
        found = []
        on, count, seed, place = options.on, options.cases, options.seed, Path(folder)
        if on.startswith("spark"):
            session = open_session("local[2]", log_file=place / "spark.log")
            all_cases: Iterable[Case] = cases_on_spark(session, count, seed, place, of_spark=on == "spark-own")
        else:
            all_cases = cases(on, count, seed, place)
        for number, case in enumerate(all_cases):
            found.append(case)
            if case.outcome not in ("detected", "harmless"):
                print(f"{number} {case.network}, {case.kind} {case.file}: {case.outcome}: {case.said}", flush=True)
    print(table(found))
    sys.exit(any(case.outcome not in ("detected", "harmless") for case in found))


if __name__ == "__main__":
    main()
