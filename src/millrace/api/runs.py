"""One call to run a network on any host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from millrace.errors import RequestError
from millrace.hosts.answers.run_answers import Standing
from millrace.hosts.control.live_changes import Changes
from millrace.hosts.report import Ending, Listeners, Report
from millrace.hosts.sinks.outputs import check_sinks
from millrace.hosts.why.lag import Lag
from millrace.language.grammar.places import listed, near
from millrace.plan.evolution.evolution import Evolution
from millrace.plan.nodes.network import Network

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
    control: Path | None = None
    """A folder through which other processes may change the network while it runs."""
    stages: int | None = None
    """How many stateful stages a new checkpoint on Spark has, at least: more than its queries need leave room."""
    profile: bool = False
    """Whether the report says where the time of micro-batches on Spark went."""


FURTHER = tuple(each.name for each in fields(RunOptions) if each.name not in ("on", "ending", "checkpoint"))
"""The options of a run that go to `RunOptions` as they are."""


def check_further(names: Iterable[str]) -> None:
    """Refuse options that no run has.

    >>> check_further(["master", "trigger"])
    """
    known = ("on", "until", "checkpoint", "background", *FURTHER)
    for name in names:
        if name not in FURTHER:
            raise RequestError(
                f'a run has no option "{name}"', hint=f"{near(name, known)}The options are {listed(known)}."
            )


class Run(Protocol):
    """A network at work."""

    def run(self) -> Report:
        """Work until it ends."""

    def stop(self) -> None:
        """Let it end soon."""

    def report(self) -> Report:
        """The run at this moment."""

    def lag(self) -> Lag:
        """What holds time back."""

    def close(self) -> None:
        """Let go of what it holds outside this process."""

    @property
    def standing(self) -> Standing:
        """The latest answers of update queries."""

    def staleness(self, query: str) -> pa.Table:
        """How stale each key of an update query is."""

    def refresh(self, query: str) -> None:
        """Ask the streams of a query for rows, and work them off."""

    @property
    def memory(self) -> dict[str, list[pa.Table]]:
        """The results so far of queries with a memory sink, by query."""


def open_run(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None = None,
    feeds: Mapping[str, Iterable[Any]] | None = None,
    changes: Changes | None = None,
) -> Run:
    """A network on the host that the options name, ready to run, and to be changed where the host can do that."""
    if options.on not in HOSTS:
        hint = f"{near(str(options.on), HOSTS)}The hosts are {listed(HOSTS)}."
        raise RequestError(f'there is no host "{options.on}"', hint=hint)
    if options.profile and options.on != "spark":
        raise RequestError("a profile is of micro-batches", hint="Run it --on spark, or leave out --profile.")
    if options.stages is not None and (options.stages < 1 or options.on != "spark"):
        raise RequestError(
            f"{options.stages} stages cannot be reserved on {options.on}",
            hint="Stages are those of a new checkpoint on Spark, one at least: --on spark --stages 2.",
        )
    if options.on == "spark":
        return _spark(network, options, listeners, feeds, changes)
    if options.on == "local":
        return _local(network, options, listeners, feeds, changes)
    return _virtual(network, options, listeners, feeds, changes)


def pending_change(options: RunOptions, changes: Changes) -> Evolution | None:
    """What would become of the queries in a checkpoint if these went on from it; nothing is touched.

    None where nothing would change.
    """
    if options.checkpoint is None or options.on == "virtual":
        raise RequestError(
            "a dry run says what would become of the queries in a checkpoint",
            hint="Name the folder with --checkpoint, and its host with --on.",
        )
    if options.on == "spark":
        from millrace.hosts.spark.commit_log import checkpoint_manifest as spark_checkpoint

        evolution = spark_checkpoint.pending_change(options.checkpoint, changes, options.stages)
    else:
        from millrace.hosts.checkpoint import checkpoint as local_checkpoint

        evolution = local_checkpoint.pending_change(options.checkpoint, changes)
    before = None if changes.ran is None else changes.ran.queries
    renamed = {} if evolution is None else evolution.renamed
    check_sinks(changes.network.queries, before, renamed, relayed=options.on == "spark")
    return evolution


def _spark(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None,
    feeds: Mapping[str, Iterable[Any]] | None,
    changes: Changes | None,
) -> Run:
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
        changes=changes,
        control=None if options.control is None else Path(options.control),
        stages=options.stages,
        profiled=options.profile,
    )


def _local(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None,
    feeds: Mapping[str, Iterable[Any]] | None,
    changes: Changes | None,
) -> Run:
    from millrace.hosts.local.host import LocalRun

    return LocalRun(
        network,
        ending=options.ending,
        checkpoint=options.checkpoint,
        feeds=feeds,
        listeners=listeners,
        changes=changes,
        control=None if options.control is None else Path(options.control),
    )


def _refuse_control(options: RunOptions, refusal: RequestError) -> None:
    if options.control is not None:
        raise refusal


def _virtual(
    network: Network,
    options: RunOptions,
    listeners: Listeners | None,
    feeds: Mapping[str, Iterable[Any]] | None,
    changes: Changes | None,
) -> Run:
    from millrace.hosts.virtual.host import Costs, VirtualRun

    if options.checkpoint is not None:
        raise RequestError(
            "the virtual host keeps no checkpoint", hint="Leave out --checkpoint: a virtual run is repeated exactly."
        )
    _refuse_control(
        options,
        RequestError("a virtual run is over before it can be asked", hint="Leave out --control, or run it --on local."),
    )
    cost = options.cost
    return VirtualRun(
        network,
        ending="end" if options.ending == "stopped" else options.ending,
        feeds=feeds,
        listeners=listeners,
        cost=Costs() if cost is None else Costs(row=cost, punctuation=cost),
        rows_per_step=None if cost is None else 1,
        tick=TICK if cost is None else 0,
        changes=changes,
    )


class Once:
    """An iterator as a feed: it can be run through once, and a second run is told so."""

    def __init__(self, stream: str, items: Iterable[Any]) -> None:
        self.stream = stream
        self.begun = False
        self._items = iter(items)

    def __iter__(self) -> Iterator[Any]:
        if self.begun:
            raise RequestError(
                f'the iterator that feeds stream "{self.stream}" has been used by a run before',
                hint="Pass a list, or build a fresh network with a fresh iterator.",
            )
        return self

    def __next__(self) -> Any:
        self.begun = True
        return next(self._items)
