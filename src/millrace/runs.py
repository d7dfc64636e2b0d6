"""One call to run a network on any host, and a handle on the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Thread
from typing import Any, Literal, Protocol

import pyarrow as pa

from millrace.console import Console
from millrace.errors import RequestError
from millrace.hosts.outputs import PLAIN, sink_folder
from millrace.hosts.report import Ending, Listeners, Report
from millrace.language.places import listed, near
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
    if options.on not in HOSTS:
        hint = f"{near(str(options.on), HOSTS)}The hosts are {listed(HOSTS)}."
        raise RequestError(f'there is no host "{options.on}"', hint=hint)
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


class Handle:
    """A network at work, or one that has ended."""

    def __init__(self, network: Network, options: RunOptions, feeds: Mapping[str, Iterable[Any]]) -> None:
        self._queries = {query.name: query for query in network.queries}
        self._console = Console()
        self._printed: dict[str, list[pa.Table]] = {
            query.name: [] for query in network.queries if query.sink.connector.format == "console"
        }
        self._run = open_run(network, options, Listeners(results=self._show), feeds)
        for stream in network.streams():
            if isinstance(feed := feeds.get(stream.name), Once):
                feed.begun = True
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, name="millrace", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._run.run()
        except BaseException as error:
            self._error = error
        finally:
            self._run.close()

    def _show(self, query: str, rows: pa.Table) -> None:
        """Print the rows of a query whose sink is the console, and keep them."""
        if query in self._printed:
            self._printed[query].append(rows)
            self._console.results(query, rows)

    def wait(self, timeout: float | None = None) -> Handle:
        """Wait until the run has ended; raises what made it fail."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return self

    def stop(self) -> Handle:
        """End the run in order, and wait for it."""
        self._run.stop()
        return self.wait()

    def results(self, query: str) -> pa.Table:
        """The result rows of a query so far, for the sinks memory and console; a bare SELECT is "query_1"."""
        if query not in self._queries:
            hint = f"{near(query, self._queries)}The queries are {listed(self._queries)}."
            raise RequestError(f'there is no query "{query}"', hint=hint)
        found = self._queries[query]
        if found.sink.connector.format not in PLAIN:
            raise RequestError(
                f'the results of query "{query}" are files in "{sink_folder(found.sink)}"',
                hint="Read that folder, or leave the sink out to keep results in memory.",
            )
        tables = (self._printed if query in self._printed else self._run.memory)[query]
        return pa.concat_tables(tables) if tables else found.root.schema.empty_table()

    def metrics(self) -> Report:
        """The accounting of every stream, and what came out."""
        return self._run.report()
