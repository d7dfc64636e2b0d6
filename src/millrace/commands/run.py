"""`millrace run` and `millrace serve`: run the queries of a file."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from millrace import __version__
from millrace.api.console import Console, Limits
from millrace.api.reader import Reader
from millrace.api.run_log import console as console_of
from millrace.api.runs import open_run, pending_change
from millrace.commands.arguments import (
    Commands,
    QueryFile,
    add_file,
    add_json,
    add_user_code,
    add_variables,
    micros,
    named_values,
    read_network,
)
from millrace.commands.check import find_faults
from millrace.commands.watch import WatchedFile, run_again
from millrace.errors import RequestError
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Listeners
from millrace.hosts.run_options import HOSTS, RunOptions
from millrace.language import bind_changes, read_file
from millrace.plan.evolution.changes import Added, Amendment, NetworkFile
from millrace.plan.nodes.endpoints import Connector, Sink
from millrace.plan.nodes.query_network import Query, QueryNetwork

if TYPE_CHECKING:
    from millrace.api.http.access_rules import AccessRules

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_to(commands: Commands) -> None:
    """Add the two commands."""
    command = commands.add_parser("run")
    _add_options(command)
    command.add_argument(
        "--serve", type=int, metavar="PORT", help="also show the live page, and answer over HTTP; 0 picks a port"
    )
    _add_access(command)
    command = commands.add_parser("serve")
    _add_options(command)
    command.add_argument(
        "--port",
        dest="serve",
        type=int,
        default=0,
        metavar="N",
        help="the port to listen on; 0, the default, picks one",
    )
    _add_access(command)


def _add_access(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--host", metavar="ADDRESS", help="where the server listens; without it only this machine can ask")
    add("--token-file", type=Path, metavar="FILE", help="holds the token of the server; needed with --host")


def _add_options(command: argparse.ArgumentParser) -> None:
    add_file(command)
    add = command.add_argument
    add("--on", choices=HOSTS, default="spark", help="the host (default: spark)")
    ends = command.add_mutually_exclusive_group()
    ends.add_argument(
        "--available-now",
        dest="ending",
        action="store_const",
        const="available",
        default="stopped",
        help="process the rows that are there, and stop; windows stay open",
    )
    ends.add_argument(
        "--until-end",
        dest="ending",
        action="store_const",
        const="end",
        help="take the end of every file as the end of its stream",
    )
    add("--checkpoint", type=Path, metavar="DIR", help="the folder that keeps the state, and from which a run resumes")
    add("--watch", action="store_true", help="check the file at every save, and run it again")
    add("--dry-run", action="store_true", help="show what would become of the queries in the checkpoint; run nothing")
    add("--master", default="local[*]", metavar="URL", help="Spark's master (default: local[*])")
    add(
        "--trigger",
        default="500 milliseconds",
        metavar="INTERVAL",
        help="time between micro-batches on Spark (default: 500 ms)",
    )
    add("--commit-interval", metavar="INTERVAL", help="time between commits on local (default: 1 second)")
    add("--stages", type=int, metavar="N", help="the least number of stateful stages in a new checkpoint on Spark")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.jars.packages=...; may be repeated",
    )
    add("--cost", metavar="INTERVAL", help="virtual time that an operator takes per row")
    add(
        "--control",
        type=Path,
        metavar="DIR",
        help="the folder through which `millrace control` changes queries (default: in the checkpoint)",
    )
    add("--profile", action="store_true", help="report where the time of micro-batches on Spark went")
    add_user_code(command)
    add_variables(command)
    add_json(command, "results and summary as JSON lines")
    add(
        "--opentelemetry",
        action="store_true",
        help="send metrics by OTLP, as the variables OTEL_... say; needs millrace[telemetry]",
    )
    add(
        "--log",
        choices=("text", "json"),
        default="text",
        help="what standard error says: lines for people (default), or one JSON object per line",
    )
    add("-v", "--verbose", action="store_true", help="let Spark log more")
    command.set_defaults(carry_out=_run)


def _run(options: argparse.Namespace) -> int:
    if not options.watch or options.dry_run:
        _run_once(options, lambda run: nullcontext())
        return 0
    watched = WatchedFile(options.file, partial(_accept, options))
    return run_again(watched, partial(_run_once, options, watched.attending))


def _accept(options: argparse.Namespace) -> None:
    """Raise what is wrong with the file as it is now, or with its checkpoint."""
    given = read_network(options)
    with given.placing():
        find_faults(given.network)
        if options.checkpoint is not None and options.checkpoint.is_dir():
            pending_change(_run_options(options), _live_changes(options, given))


def _live_changes(options: argparse.Namespace, given: QueryFile) -> LiveChanges:
    allowed = options.user_code
    bind, read = partial(_bind_shown, user_code=allowed), partial(_read_shown, user_code=allowed)
    return LiveChanges(_shown(given.network), given.text, bind, read)


def _run_once(options: argparse.Namespace, attending: Callable[[HostRun], AbstractContextManager[object]]) -> bool:
    """Run the file once, in `attending`; True if a signal has ended it."""
    given = read_network(options)
    console = console_of(options.log, as_json=options.json)
    console.shown(given.shown)
    if not given.network.queries:
        return False
    changes = _live_changes(options, given)
    limits = Limits(lambda: changes.network.queries, lambda: signals.stop())

    def results(name: str, rows: pa.Table) -> None:
        query = next((each for each in changes.network.queries if each.name == name), None)
        if query is not None and query.sink.connector.format == "console":
            rows = limits.within(query, rows)
            console.results(name, rows)
            reader.note_results(name, rows)

    chosen = _run_options(options)
    if options.dry_run:
        console.evolution(pending_change(chosen, changes), would=True)
        return False
    changes.changed = console.changed
    listeners = Listeners(progress=console.progress, results=results, warning=console.warning, phase=console.phase)
    checkpoint = None if chosen.checkpoint is None else str(chosen.checkpoint)
    file, ending = str(options.file), chosen.ending
    console.started(
        changes.network, version=__version__, file=file, host=chosen.on, ending=ending, checkpoint=checkpoint
    )
    with given.placing(), _StopOnSignals(console.stopping) as signals:
        if options.on == "spark":
            console.phase("starting Spark")
        try:
            run = _opened(
                lambda: open_run(changes.network, chosen, listeners, changes=changes), apart=options.on == "spark"
            )
        finally:
            console.clear()
        signals.run = run
        if changes.evolution is not None:
            console.evolution(changes.evolution)
        reader = Reader(run, changes)
        if options.on == "spark":
            console.phase("waiting for the first micro-batch")
        try:
            with _served(options, reader, console), _exported(options, reader), reader.attending(), attending(run):
                report = run.run()
            console.summary(report)
        finally:
            console.clear()
            run.close()
    return signals.signalled


def _run_options(options: argparse.Namespace) -> RunOptions:
    return RunOptions(
        options.on,
        options.ending,
        options.checkpoint,
        control=_control(options),
        commit_interval=_given("--commit-interval", options.commit_interval),
        cost=_given("--cost", options.cost),
        master=options.master,
        trigger=f"{micros('--trigger', options.trigger) // 1_000} milliseconds",
        settings=named_values("--set", options.set),
        stages=options.stages,
        profile=options.profile,
        verbose=options.verbose,
        user_code=options.user_code,
    )


def _given(name: str, interval: str | None) -> int | None:
    """An interval in microseconds, if it was given."""
    return None if interval is None else micros(name, interval)


def _control(options: argparse.Namespace) -> Path | None:
    """The control folder: as given, or in the checkpoint."""
    if options.control is None and options.on != "virtual" and options.checkpoint is not None:
        return Path(options.checkpoint) / "control"
    return options.control


def _served(options: argparse.Namespace, reader: Reader, console: Console) -> AbstractContextManager[object]:
    """The answers of a run over HTTP as long as it lasts, if that was asked for."""
    if options.serve is None:
        return nullcontext()
    # Imported here: few runs are asked over HTTP.
    from millrace.api.http.server import Server

    server = Server(reader, options.serve, _access(options))
    console.serving(server.url, server.page if options.token_file is None else f"{server.url}/")
    return server


def _exported(options: argparse.Namespace, reader: Reader) -> AbstractContextManager[object]:
    """The metrics of a run sent by OpenTelemetry as long as it lasts, if that was asked for."""
    if not options.opentelemetry:
        return nullcontext()
    # Imported here: the library is large, and need not be installed.
    from millrace.hosts.telemetry.open_telemetry import exported

    return exported(reader.report)


def _access(options: argparse.Namespace) -> AccessRules:
    """Who may ask the server, as the options say."""
    from millrace.api.http.access_rules import AccessRules

    token = None
    if options.token_file is not None:
        try:
            token = options.token_file.read_text().strip()
        except (OSError, ValueError) as error:
            raise RequestError(
                f'the token in "{options.token_file}" cannot be read: {error}', hint="Write it there as one line."
            ) from None
    return AccessRules.of(options.host, token)


_LOOK_UP = 0.1
"""Seconds after which a start looks for signals again."""


def _opened(open_it: Callable[[], HostRun], *, apart: bool) -> HostRun:
    """The run, opened in a thread of its own if told to: a start of Spark does not see signals, this thread does."""
    if not apart:
        return open_it()
    opened: Future[HostRun] = Future()

    def start() -> None:
        try:
            opened.set_result(open_it())
        except BaseException as error:
            opened.set_exception(error)

    Thread(target=start, name="start", daemon=True).start()
    while not opened.done():
        # Not without a limit: a signal that another thread was given does not end a wait of this one.
        wait([opened], timeout=_LOOK_UP)
    return opened.result()


class _StopOnSignals:
    """Lets the first signal end the run in order, or its start at once, and a second one end the process.

    SIGHUP is such a signal, unless it is ignored: `nohup` sees to that.
    """

    def __init__(self, line: Callable[[bool], str] | None = None) -> None:
        self.run: HostRun | None = None
        self.signalled = False
        """True if a signal has come."""
        self._line = line or Console().stopping
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def __enter__(self) -> _StopOnSignals:
        # While Spark starts, standard error is its log.
        self._said = os.dup(2)
        for number, before in self._before.items():
            if before is not signal.SIG_IGN:
                signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(self._said)

    def stop(self) -> None:
        """End the run in order."""
        assert self.run is not None, "results come from a run"
        self.run.stop()

    def _stop(self, number: int, frame: object) -> None:
        self.signalled = True
        for each, before in self._before.items():
            signal.signal(each, before)
        os.write(self._said, self._line(os.isatty(self._said)).encode())
        if self.run is None:
            raise SystemExit(128 + number)
        self.run.stop()


# Results that other processes could not read in memory are shown on the console instead


def _shown(network: QueryNetwork) -> QueryNetwork:
    return QueryNetwork(tuple(map(_shown_query, network.queries)))


def _shown_query(query: Query) -> Query:
    if query.sink.connector.format != "memory":
        return query
    return replace(query, sink=Sink(query.name, Connector("console", query.sink.connector.options)))


def _bind_shown(declared: str, text: str, queries: Sequence[Query], *, user_code: bool) -> Amendment:
    amendment = bind_changes(declared, text, queries, user_code=user_code)
    shown = (Added(_shown_query(each.query)) if isinstance(each, Added) else each for each in amendment.changes)
    return replace(amendment, changes=tuple(shown))


def _read_shown(text: str, beside: str, *, user_code: bool) -> NetworkFile:
    found = read_file(text, beside, user_code=user_code)
    return replace(found, network=_shown(found.network))
