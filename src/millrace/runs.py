"""One call to run a network on any host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from millrace.errors import RequestError
from millrace.hosts.report import Ending, Listeners, Report
from millrace.plan.nodes import Network

HostName = Literal["spark", "local", "virtual"]
HOSTS: tuple[HostName, ...] = ("spark", "local", "virtual")
TICK = 100_000
"""Microseconds: without a cost to be exact about, virtual time moves in tenths of a second."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is to be carried out."""

    on: HostName = "spark"
    ending: Ending = "stopped"
    checkpoint: Path | None = None
    master: str = "local[*]"
    trigger: str = "500 milliseconds"
    cost: int | None = None
    verbose: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


class Run(Protocol):
    """A network at work."""

    def run(self) -> Report:
        """Work until it ends."""

    def stop(self) -> None:
        """Let it end soon."""

    def report(self) -> Report:
        """The run at this moment."""

    def close(self) -> None:
        """Let go of what it holds outside this process."""

    @property
    def memory(self) -> dict[str, list[pa.Table]]:
        """The results so far of queries with a memory sink, by query."""


def open_run(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None = None,
    feeds: Mapping[str, Iterable[Any]] | None = None,
) -> Run:
    """A network on the host that the options name, ready to run."""
    if options.on == "spark":
        # Imported here: the other hosts do not need Spark, nor the second it takes to load.
        from millrace.hosts.spark.host import SparkRun

        return SparkRun(
            network,
            ending=options.ending,
            checkpoint=options.checkpoint,
            feeds=feeds,
            listeners=listeners,
            master=options.master,
            trigger=options.trigger,
            settings=options.settings,
            verbose=options.verbose,
        )
    if options.on == "local":
        from millrace.hosts.local import LocalRun

        return LocalRun(network, ending=options.ending, checkpoint=options.checkpoint, feeds=feeds, listeners=listeners)
    return _virtual(network, options, listeners, feeds)


def _virtual(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None,
    feeds: Mapping[str, Iterable[Any]] | None,
) -> Run:
    from millrace.hosts.virtual import VirtualRun

    if options.checkpoint is not None:
        raise RequestError(
            "the virtual host keeps no checkpoint", hint="Leave out --checkpoint: a virtual run is repeated exactly."
        )
    cost = options.cost
    return VirtualRun(
        network,
        ending="end" if options.ending == "stopped" else options.ending,
        feeds=feeds,
        listeners=listeners,
        cost=(lambda node, rows: 0) if cost is None else (lambda node, rows: cost * max(rows, 1)),
        rows_per_step=None if cost is None else 1,
        tick=TICK if cost is None else 0,
    )
