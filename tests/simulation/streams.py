"""Random streams: every contract; rows in bursts and lulls, with ties, skew, disorder, bad clocks, dead partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from millrace.testing.simulation.scenario import TimedRows

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
"""The clock when the first row may arrive."""
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("k", pa.string()), ("j", pa.int32()), ("v", pa.int64()), ("x", pa.float64()),
     ("ts", TIMESTAMP), ("began", TIMESTAMP)]
)  # fmt: skip
COLUMNS = "id BIGINT, k STRING, j INT, v BIGINT, x DOUBLE, ts TIMESTAMP, began TIMESTAMP"
_STEPS = (0, 0, 0, 1, SECOND // 2, SECOND, SECOND, 2 * SECOND, 5 * SECOND)


@dataclass
class MadeStream:
    """The declaration of a stream, its rows, and what it has."""

    name: str
    clauses: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"CREATE STREAM {self.name} ({COLUMNS}) {' '.join(self.clauses)} FROM iterable;\n"

    @property
    def arriving(self) -> TimedRows:
        return TimedRows(pa.Table.from_pylist(self.rows, SCHEMA), tuple(self.arrivals))


def made_stream(random: Random, name: str, *, base: int, time: str, updates: bool, size: int) -> MadeStream:
    """A stream whose times begin at `base`; `time` is external, internal or latent."""
    made = MadeStream(name, features=[f"time {time}"])
    disorder, breach = 0, 0
    if time == "external":
        disorder = random.choice((0, 2, 15))
        breach = random.choice((0, 0, 0, 20))
        made.clauses += _contract(random, made, disorder, base)
        if breach:
            made.features.append("arrivals late")
        if random.random() < 0.5:
            made.clauses.append(f"LATE INTO {name}_late")
    else:
        made.clauses.append("INTERNAL TIMESTAMP AS ts" if time == "internal" else "LATENT TIMESTAMP")
    if updates:
        made.clauses.append("UPDATE KEY (k, j)")
    bad = random.choice((0.0, 0.0, 0.0, 0.1)) if time == "external" else 0.0
    _fill(random, made, base, disorder, breach, bad, size)
    return made


def _contract(random: Random, made: MadeStream, disorder: int, base: int) -> Iterator[str]:
    """The clauses about time of an external stream."""
    order = random.choice(("interval", "interval", "interval", "rows", "condition", "value"))
    made.features.append(f"order {order} {disorder}" if order == "interval" else f"order {order}")
    yield {
        "interval": f"TIMESTAMP BY ts DISORDER INTERVAL {disorder} SECONDS" if disorder else "TIMESTAMP BY ts ORDERED",
        "rows": f"TIMESTAMP BY ts DISORDER {random.choice((0, 2, 5))} ROWS",
        "condition": "TIMESTAMP BY ts PUNCTUATED BY v = 5",
        "value": "TIMESTAMP BY ts PUNCTUATED BY began - INTERVAL 5 SECONDS",
    }[order]
    if order != "rows" and random.random() < 0.25:
        made.features.append("partitions")
        more = random.choice(("", "", " VALUES (0, 1, 2, NULL)", " GRACE INTERVAL 5 SECONDS"))
        yield f"PARTITIONED BY (j){more}"
    ets = random.choice(("", "", "ETS ON DEMAND ", "ETS EVERY INTERVAL 3 SECONDS "))
    if ets:
        # An ETS by the clock says nothing of a stream whose times are those of another year.
        how = random.choice(("SKEW", "LULL")) if base == START else "LULL"
        made.features.append(f"{ets.partition(' INTERVAL')[0].strip()} {how}")
        yield f"{ets}{how} INTERVAL {disorder + random.choice((0, 5, 30))} SECONDS"
    if random.random() < 0.15:
        made.features.append("max future skew")
        yield f"MAX FUTURE SKEW INTERVAL {random.choice((10, 60))} SECONDS"


def _fill(random: Random, made: MadeStream, base: int, disorder: int, breach: int, bad: float, size: int) -> None:
    greatest, arrival = base + random.choice((0, 3, 30)) * SECOND, START
    busy = random.choice((0.0, 0.0, 0.7))
    dead = random.choice((None, None, 0, 1))
    if dead is not None:
        made.features.append("arrivals dead partition")
    if bad:
        made.features.append("arrivals bad clock")
    for number in range(random.choice((0, size // 4, size // 2, size, size))):
        step = random.choice(_STEPS) if random.random() < 0.95 else 60 * SECOND
        greatest, arrival = greatest + step, arrival + random.choice((step, step, 0, step + SECOND))
        time: int | None = greatest - random.randint(0, disorder * 2) * SECOND // 2
        if breach and random.random() < 0.2:
            time = greatest - random.randint(0, breach + disorder) * SECOND
        if random.random() < bad:
            time = random.choice((None, greatest + 3600 * SECOND, greatest + 30 * SECOND))
        row = _row(random, number, time, busy)
        if row["j"] == dead and number > size // 3:
            row["j"] = 2
        made.rows.append(row)
        made.arrivals.append(arrival)


def _row(random: Random, number: int, time: int | None, busy: float) -> dict[str, Any]:
    lasts = random.choice((None, -1, 0, 1, 4, 9))
    return {
        "id": number,
        "k": "a" if random.random() < busy else random.choice((None, "a", "b", "ä", "")),
        "j": random.choice((None, 0, 1, 2)),
        "v": random.choice((None, *range(-1, 6))),
        "x": random.choice((None, 0.0, -0.0, 2.0, -1.25)),
        "ts": time,
        "began": None if lasts is None or time is None else time + lasts * SECOND,
    }


def apart(streams: list[MadeStream]) -> None:
    """Let no two rows have the same time: of two updates of a key one is the newer."""
    for place, made in enumerate(streams):
        for row in made.rows:
            if row["ts"] is not None:
                row["ts"] = row["ts"] // 1_000 * 1_000 + row["id"] * len(streams) + place
