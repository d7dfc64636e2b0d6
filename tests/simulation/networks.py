"""One generator of random networks, in SQL text: streams of every contract, queries of every kind, what happens then.

A seed gives a scenario. Queries of joins and windows come from the generators of the property tests, drawn with a
seeded source of chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis.internal.conjecture.data import ConjectureData

from millrace.testing.simulation.run_faults import any_fault
from millrace.testing.simulation.scenario import Life, Scenario
from tests.property import joins, windows
from tests.property.user_aggregates import DECLARED
from tests.simulation.streams import SECOND, START, apart, made_stream

STREAMS = ("s0", "s1", "s2")
STRATEGIES = ("dfs", "bfs", "rr", "batch:1", "batch:3", "batch:64")
POLICIES = ("update_fifo", "inplace", "linecutting", "auto", "append")
LATENT = ("rows_sliding", "rows_trailing", "rows_partitioned")
"""Windows whose answers do not depend on when rows are stamped."""


@dataclass(frozen=True)
class Made:
    """A scenario, and what it has, for the summary of a soak: queries, contracts, options, arrivals, changes."""

    scenario: Scenario
    features: tuple[str, ...]


def made(seed: int) -> Made:
    """The scenario of a seed."""
    return _Maker(seed).made()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, Random(seed)
        self.draw: Callable[[Any], Any] = ConjectureData(random=Random(seed), prefix=()).draw
        self.features: list[str] = []
        self.lossy: list[str] = []
        """Update queries whose queue may be changed."""
        self.later: list[str] = []
        """Queries that are added while the network runs."""
        self.time = self.random.choice(("external",) * 8 + ("internal", "latent"))
        self.updates = self.time == "external" and self.random.random() < 0.2
        """True if its streams are update streams."""

    def made(self) -> Made:
        random = self.random
        queries = [self._query(f"q{number}") for number in range(random.choice((1, 1, 2, 2, 3)))]
        lives = self._lives(len(queries))
        fresh = self._query("f0") if len(lives) > 1 and random.random() < 0.3 else ""
        self.later += [fresh] if fresh else []
        texts = "".join((*queries, *self.later))
        base = random.choice((START, START, 0, -40 * SECOND)) if self.time == "external" else START
        # Three streams are joined by nested loops in the reference.
        size = 16 if " z" in texts else 32
        used = [name for name in STREAMS if re.search(rf"\b{name}\b", texts)]
        streams = [
            made_stream(random, name, base=base, time=self.time, updates=self.updates, size=size) for name in used
        ]
        if self.updates:
            apart(streams)
        for each in streams:
            self.features += each.features
        declared = "".join(each.text for each in streams)
        text = (DECLARED if re.search(r"spread\(|myavg\(", texts) else "") + declared + "".join(queries)
        for name in used:
            how = " WITH (queue = 'append')" if self.updates else ""
            text += f"CREATE QUERY seen_{name} AS SELECT id, ts FROM {name}{how};\n"
            text += f"CREATE QUERY late_{name} AS SELECT id FROM {name}_late;\n" if f"{name}_late" in declared else ""
        span = max((each.arrivals[-1] - START for each in streams if each.arrivals), default=0) + SECOND
        scenario = Scenario(
            self.seed,
            text,
            {each.name: each.arriving for each in streams},
            self._with_files(lives, text, queries[-1], fresh),
            commit_interval=span // random.choice((1, 2, 4, 8)),
            rows_per_step=random.choice((None, None, 1, 3)),
        )
        return Made(scenario, tuple(self.features))

    def _has(self, feature: str) -> str:
        self.features.append(feature)
        return feature

    # Queries

    def _query(self, name: str, verb: str = "CREATE") -> str:
        text = self._update_query() if self.updates else self._plain_query()
        if "queue = '" in text and "append" not in text:
            self.lossy.append(name)
        if " WITH (" not in text and not self.updates and self.random.random() < 0.6:
            strategy = f"strategy = '{self.random.choice(STRATEGIES)}'"
            options = self.random.choice((strategy, strategy, "breaks = 'chain'", "share = 2", "ets_arcs = 'off'"))
            text += f" WITH ({self._has(options)})"
        return f"{verb} QUERY {name} AS {text.strip()};\n"

    def _plain_query(self) -> str:
        random, where = self.random, self.random.choice(windows.FILTERS)
        if self.time == "latent":
            kind = random.choice(("plain", *LATENT))
            self._has(f"query {kind}")
            return windows.KINDS[kind](self.draw, "s0") if kind in LATENT else f"SELECT k, v FROM s0 {where}"
        union = " UNION ".join(sorted(random.sample(STREAMS, random.choice((1, 1, 2, 3)))))
        kind = random.choice((*windows.KINDS, *joins.KINDS, "plain", "plain", "ordered", "ordered"))
        self._has(f"query {kind}")
        if kind in windows.KINDS:
            return windows.KINDS[kind](self.draw, union)
        if kind in joins.KINDS:
            return joins.KINDS[kind](self.draw)
        return f"SELECT k, v, ts FROM {union} {where}{' ORDER BY ts' if kind == 'ordered' else ''}"

    def _update_query(self) -> str:
        random = self.random
        policy = f"queue = '{random.choice(POLICIES)}'"
        kind = random.choice(("map", "map", "budget", "shed", "union", "join", "window", "window"))
        self._has(f"updates {kind}")
        window = f"[RANGE {random.choice((10, 20))} SECONDS SLIDE 10 SECONDS]"
        columns = "SELECT k, j, v, ts FROM"
        match kind:
            case "map":
                return f"{columns} s0 {random.choice(('', 'WHERE v % 3 = 0'))} WITH ({self._has(policy)})"
            case "budget":
                return f"{columns} s0 WITH (budget = '2 rows')"
            case "shed":
                return f"{columns} s0 WITH (queue = 'append_shed', keep = 0.5)"
            case "union":
                return f"{columns} s0 UNION s1 WITH ({self._has(policy)})"
            case "join":
                both = "SELECT s0.k, s0.j, s0.v, s1.v AS w, s0.ts, s1.ts AS at"
                return f"{both} FROM s0 JOIN s1 ON s0.k = s1.k AND s0.j = s1.j"
        mode = f"update_window = '{random.choice(('lazy', 'eager'))}'"
        counts = f"SELECT window, k, j, count(*) AS n, sum(v) AS total FROM s0 {window} GROUP BY k, j"
        return f"{counts} WITH ({self._has(mode)})"

    # What happens

    def _lives(self, queries: int) -> tuple[Life, ...]:
        return tuple(self._life(queries) for _ in range(self.random.choice((0, 1, 1, 2, 3))))

    def _with_files(self, lives: tuple[Life, ...], text: str, leaves: str, fresh: str) -> tuple[Life, ...]:
        """Let the last run be started with another file: a query has left, or one is new."""
        if not fresh:
            return lives
        other = self.random.choice((text + fresh, text.replace(leaves, "") + fresh))
        self._has("change file")
        return (*lives[:-1], replace(lives[-1], text=other))

    def _life(self, queries: int) -> Life:
        random = self.random
        events: list[tuple[int, str | int]] = []
        for _ in range(random.choice((0, 0, 0, 1, 2))):
            events.append((random.choice((1, 2, 5, 10, 30)), self._change(random.randrange(queries))))
        if random.random() < 0.1:
            jump = random.choice((-3600, -10, 10, 3600)) * SECOND
            self._has("clock jump back" if jump < 0 else "clock jump ahead")
            events.append((random.choice((1, 5, 20)), jump))
        return Life(any_fault(random), tuple(events))

    def _change(self, query: int) -> str | int:
        match self.random.choice(("add", "add", "drop", "alter")):
            case "add":
                self._has("change add")
                self.later.append(self._query(f"r{len(self.later)}", "ADD"))
                return self.later[-1]
            case "drop":
                self._has("change drop")
                return f"DROP QUERY q{query}"
        self._has("change alter")
        if self.updates:
            # What an append queue let pass stays given, so no query becomes one, nor ceases to be one.
            changed = self.random.choice([each for each in POLICIES if each != "append"])
            name = self.random.choice(self.lossy) if self.lossy else "none"
            return f"ALTER QUERY {name} SET (queue = '{changed}')"
        return f"ALTER QUERY q{query} SET (strategy = '{self.random.choice(STRATEGIES)}')"
