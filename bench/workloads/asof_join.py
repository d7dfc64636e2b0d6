"""Rows per second of as-of joins: trades with quotes, flights with the weather, and 1 million rows with 4 million.

DuckDB's as-of join over the finished input stands beside ours as an orientation, and says whether the answers are true.
It is no peer: it waits for nothing, has all rows before it begins, and keeps no state for rows to come.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.measures.comparison import OURS, compare
from bench.queries.lookups import Inputs, Shape, write_lookups
from bench.queries.recorded_streams import DATA, flights_and_weather, trades_and_quotes
from bench.systems.engines import Engine, duck

BATCH_ENGINE: dict[str, Engine] = {"DuckDB, all at once": duck}
KEYS = 4_096


def run(rows: int, rounds: int, data: Path = DATA) -> None:
    """Measure the recorded streams on both hosts, and many rows, of which a fifth ask, on the local one."""
    _measured("trades with quotes", trades_and_quotes(data), rounds, {**OURS, **BATCH_ENGINE})
    _measured("flights with weather", flights_and_weather(data), rounds, {**OURS, **BATCH_ENGINE})
    asked = rows * 5 // 32
    many = Shape(KEYS, asked, 4 * asked, seconds=600.0, asked_late=0.1, known_late=0.1)
    _measured("made-up rows", many.made(), rounds, {"local host": OURS["local host"], **BATCH_ENGINE})


def _measured(what: str, inputs: Inputs, rounds: int, engines: Mapping[str, Engine]) -> None:
    print(f"{what}: {inputs.asked.num_rows:,} rows that ask, {inputs.known.num_rows:,} to choose from", flush=True)
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        workload = write_lookups(Path(name) / "in", inputs)
        compare("asof_join", workload, Path(name), rounds, engines=engines, files_per_batch=1, of=what)
