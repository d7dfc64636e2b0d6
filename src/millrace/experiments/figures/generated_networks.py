"""Query graphs of the papers' experiments as SQL over generated streams, and the case that runs one in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from millrace.experiments.figures.curves import Measured
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network

_SECOND = 1e6


@dataclass(frozen=True)
class NetworkCase:
    """A network that is run for so many seconds of input; `costs` are microseconds of work.

    `observe` measures more of the finished run.
    """

    text: str
    seconds: float
    costs: Costs
    ets_arcs: bool = True
    merge_punctuation: bool = True
    observe: Callable[[VirtualRun], Measured] | None = None

    def measure(self) -> Measured:
        """The mean latency of a row, the share of the time an operator idle-waited, and the most elements at a time."""
        run = VirtualRun(
            parse_network(self.text),
            cost=self.costs,
            rows_per_step=1,
            ets_arcs=self.ets_arcs,
            merge_punctuation=self.merge_punctuation,
        )
        run.run()
        metrics = run.metrics()
        (sink,) = metrics.sinks.values()
        return {
            "results": sink.rows,
            "latency": sink.latency.mean / _SECOND,
            "idle": max(node.idle for node in metrics.nodes.values()) / (self.seconds * _SECOND),
            "peak": metrics.peak_queued,
            **(self.observe(run) if self.observe else {}),
        }


@dataclass(frozen=True)
class GeneratedStream:
    """A generated stream of one column `v`, uniform in [0, 1); `time` is its time contract and ETS."""

    name: str
    rate: float
    time: str
    options: dict[str, object] = field(default_factory=dict)

    def statement(self, seconds: float, seed: int) -> str:
        """Its declaration."""
        given = {"rate": self.rate, "seconds": seconds, "seed": seed, **self.options}
        options = ", ".join(f"{key} '{value}'" for key, value in given.items())
        columns = "v DOUBLE, ts TIMESTAMP" if self.time.startswith("TIMESTAMP BY") else "v DOUBLE"
        return f"CREATE STREAM {self.name} ({columns}) {self.time} FROM generate OPTIONS ({options});"


INTERNAL = "INTERNAL TIMESTAMP AS ts"
LATENT = "LATENT TIMESTAMP"
NONE = f"{INTERNAL} ETS NONE"
ON_DEMAND = f"{INTERNAL} ETS ON DEMAND"


def every(rate: float) -> str:
    """Internal timestamps with so many periodic ETS per second."""
    return f"{INTERNAL} ETS EVERY INTERVAL {round(1e6 / rate)} MICROSECONDS"


def declared(streams: Sequence[GeneratedStream], seconds: float) -> str:
    """The declarations of the streams, each with a seed of its own."""
    return "\n".join(stream.statement(seconds, seed) for seed, stream in enumerate(streams, 1))


def selected_union(
    first: GeneratedStream, second: GeneratedStream, seconds: float, *, passing: float = 0.95, strategy: str = ""
) -> str:
    """000 Fig. 4: a selection over each of two streams, and their union in order of time.

    Streams with latent timestamps have no order to keep: their rows pass as they come.
    """
    branches = [f"SELECT * FROM {each.name} WHERE v < {passing}" for each in (first, second)]
    order = "" if first.time == LATENT else " ORDER BY ts"
    options = f" WITH (strategy = '{strategy}')" if strategy else ""
    query = f"CREATE QUERY united{options} AS {' UNION '.join(branches)}{order};"
    return f"{declared((first, second), seconds)}\n{query}"


def slide_and_union(streams: Sequence[GeneratedStream], seconds: float, *, slide: float, below: int = 2) -> str:
    """001 Fig. 10: a slide aggregate over the ordered union of two streams, and its ordered union with a third one.

    Each of the two passes so many selections `below` the aggregate, one after the other, and the third stream two.
    """
    first, second = (_selected(stream.name, below) for stream in streams[:2])
    third = _selected(streams[2].name, 2)
    length = f"{round(slide * 1e6)} MICROSECONDS"
    query = f"""CREATE QUERY united WITH (baseline = 'in_order') AS
  SELECT window_end AS ts, n FROM (
    SELECT window_end, count(*) AS n FROM ({first} UNION {second}) [RANGE {length} SLIDE {length} WA ts])
  UNION SELECT ts, CAST(1 AS BIGINT) AS n FROM ({third})
  ORDER BY ts;"""
    return f"{declared(streams, seconds)}\n{query}"


def _selected(stream: str, selections: int) -> str:
    """A select over a stream through so many selections, each with a predicate that few rows fail."""
    text = f"SELECT * FROM {stream} WHERE v < 0.98"
    for number in range(1, selections):
        text = f"SELECT * FROM ({text}) WHERE v >= {number * 0.01:.2f}"
    return text
