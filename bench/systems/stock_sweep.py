"""Which settings make stock Spark fastest for a query: all variants in one warm process, over the first files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.queries.workload import Work
from bench.systems.engines import PeerFailed, shortened, stock_reports
from bench.systems.stock_settings import ALWAYS, Variant
from millrace.experiments.stock_spark import Job, StockSpark

FILES = 2
"""Files of each stream, one per micro-batch."""
Line = Mapping[str, Any]


def swept(workload: Work, variants: Sequence[Variant], folder: Path) -> list[dict[str, Any]]:
    """The seconds of every variant, after one round with each store and its first variant that warm up."""
    work = shortened(workload, folder / "short", FILES)
    warm = list({each.store: each for each in reversed(variants)}.values())
    tried = [*warm, *variants]
    queries = [work.stock(folder / f"results-{i}", folder / f"state-{i}", 1) for i in range(len(tried))]  # type: ignore[attr-defined]
    job = Job(queries, bounded=True, settings=ALWAYS, each=[each.settings() for each in tried])
    process = StockSpark(job, folder / "spark.log", type(queries[0]).__module__)
    seconds = [report["seconds"] for report in stock_reports(process) if "seconds" in report]
    if len(seconds) < len(tried):
        raise PeerFailed(f"ended with {tried[len(seconds)]}")
    return [
        {"variant": each.data(), "seconds": round(found, 2)}
        for each, found in zip(variants, seconds[len(warm) :], strict=True)
    ]


def fastest(lines: Iterable[Line], store: str) -> Variant:
    """The variant of a store that took the least time."""
    own = [line for line in lines if line["variant"]["store"] == store]
    return Variant(**min(own, key=lambda line: line["seconds"])["variant"])
