"""One call that runs a network on any host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from millrace.api.sql_text.durations import Length, length
from millrace.errors import RequestError, did_you_mean, listed
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Ending, Listeners
from millrace.hosts.run_options import HostName, RunOptions
from millrace.hosts.sinks.sinks import check_sinks
from millrace.language import parse_interval
from millrace.plan.evolution.evolution import Evolution
from millrace.plan.nodes.query_network import QueryNetwork

TICK = 100_000
"""Microseconds: without a cost to be exact about, virtual time moves in tenths of a second."""
_ENDINGS: dict[str | None, Ending] = {None: "stopped", "available": "available", "end": "end"}


def run_options(
    on: HostName, until: str | None, checkpoint: str | Path | None, further: Mapping[str, Any]
) -> RunOptions:
    """The options of a run as Python gives them: paths may be text, and a cost or interval a length of time."""
    if until not in _ENDINGS:
        raise RequestError(f'a run cannot last until "{until}"', hint='Use until="end" or until="available".')
    names = [each.name for each in fields(RunOptions) if each.name not in ("on", "ending", "checkpoint")]
    known = ("on", "until", "checkpoint", "background", *names)
    for name in further:
        if name not in names:
            raise RequestError(
                f'a run has no option "{name}"', hint=f"{did_you_mean(name, known)}The options are {listed(known)}."
            )
    given = dict(further)
    for name in ("cost", "commit_interval"):
        if isinstance(value := given.get(name), Length):
            given[name] = parse_interval(length(name, value))
    if given.get("control") is not None:
        given["control"] = Path(given["control"])
    return RunOptions(on, _ENDINGS[until], Path(checkpoint) if checkpoint else None, **given)


def open_run(
    network: QueryNetwork,
    options: RunOptions,
    listeners: Listeners | None = None,
    feeds: Mapping[str, Iterable[Any]] | None = None,
    changes: LiveChanges | None = None,
) -> HostRun:
    """A run of the network on the host that the options name, not started yet."""
    # Each host is imported where it is used: the others do not need Spark, nor the second it takes to load.
    if options.on == "spark":
        from millrace.hosts.spark.host import SparkRun

        return SparkRun(network, options, feeds=feeds, listeners=listeners, changes=changes)
    if options.on == "local":
        from millrace.hosts.local.host import LocalRun

        return LocalRun(network, options, feeds=feeds, listeners=listeners, changes=changes)
    from millrace.hosts.virtual.clock import Costs
    from millrace.hosts.virtual.host import VirtualRun

    cost = options.cost
    return VirtualRun(
        network,
        options,
        feeds=feeds,
        listeners=listeners,
        changes=changes,
        cost=Costs() if cost is None else Costs(row=cost, punctuation=cost),
        rows_per_step=None if cost is None else 1,
        tick=TICK if cost is None else 0,
    )


def pending_change(options: RunOptions, changes: LiveChanges) -> Evolution | None:
    """What would become of the queries in a checkpoint if a run with these resumed from it; None if nothing changes.

    The checkpoint is only read.
    """
    if options.checkpoint is None or options.on == "virtual":
        raise RequestError(
            "a dry run needs a checkpoint",
            hint="Name its folder with --checkpoint, and its host with --on.",
        )
    if options.on == "spark":
        from millrace.hosts.spark.commit_log import checkpoint_manifest as spark_checkpoint

        evolution = spark_checkpoint.pending_change(options.checkpoint, changes, options.stages)
    else:
        from millrace.hosts.checkpoint import checkpoint as local_checkpoint

        evolution = local_checkpoint.pending_change(options.checkpoint, changes)
    before = None if changes.ran is None else changes.ran.queries
    check_sinks(changes.network.queries, before, changes.renamed, relayed=options.on == "spark")
    return evolution


class SingleUse:
    """An iterator as a feed: it can be read once, and a second run is refused."""

    def __init__(self, stream: str, items: Iterable[Any]) -> None:
        self.stream = stream
        self.begun = False
        self._items = iter(items)

    def __iter__(self) -> Iterator[Any]:
        if self.begun:
            raise RequestError(
                f'the iterator that feeds stream "{self.stream}" has been read by an earlier run',
                hint="Pass a list, or build a fresh network with a fresh iterator.",
            )
        return self

    def __next__(self) -> Any:
        self.begun = True
        return next(self._items)
