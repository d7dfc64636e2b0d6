"""The command line: arguments in, one call out.

Exit code 0: done; 1: the run failed; 2: the request was wrong. Messages go to standard error, without a traceback.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from millrace import __version__
from millrace.api.console import Console
from millrace.api.durations import length
from millrace.api.expectations import expected
from millrace.api.reader import Reader
from millrace.api.runs import Run, open_run, pending_change
from millrace.commands import doctor
from millrace.commands.latest import latest_arguments
from millrace.commands.why import why
from millrace.connectors.inputs import open_input
from millrace.connectors.native import is_native
from millrace.errors import MillraceError, RequestError
from millrace.hosts.control.live_changes import Changes
from millrace.hosts.control.replies import answer_text
from millrace.hosts.control.request_folder import ask
from millrace.hosts.report import Ending, Listeners
from millrace.hosts.run_options import HOSTS, RunOptions
from millrace.hosts.sinks.outputs import file_sinks
from millrace.language import bind_changes, parse_interval, parse_network, read_file
from millrace.plan.evolution.changes import Added, Amendment
from millrace.plan.evolution.changes import File as NetworkFile
from millrace.plan.explain.explain import explain
from millrace.plan.nodes.endpoints import Connector, Sink
from millrace.plan.nodes.query_network import Network, Query
from millrace.plan.physical.stages import physical

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit code."""
    options = _parser().parse_args(arguments)
    # Libraries that log a fault which they also raise would print it on the terminal; we say it once.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return int(options.carry_out(options))
    except MillraceError as error:
        print(f"millrace: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        if os.environ.get("MILLRACE_DEBUG"):
            raise
        print(f"millrace: a fault of ours: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: Set MILLRACE_DEBUG=1 to see where, and tell us.", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    text, network = _read(options.file)
    changes = Changes(_shown(network), text, _bind_shown, _read_shown)
    console = Console(as_json=options.json)

    def results(name: str, rows: pa.Table) -> None:
        if any(each.name == name and each.sink.connector.format == "console" for each in changes.network.queries):
            console.results(name, rows)

    cost = None if options.cost is None else parse_interval(length("--cost", options.cost))
    trigger = f"{parse_interval(length('--trigger', options.trigger)) // 1_000} milliseconds"
    chosen = RunOptions(
        options.on,
        _ending(options),
        options.checkpoint,
        control=_control(options),
        cost=cost,
        master=options.master,
        trigger=trigger,
        settings=_settings(options.set),
        stages=options.stages,
        profile=options.profile,
        verbose=options.verbose,
    )
    if options.dry_run:
        console.evolution(pending_change(chosen, changes), would=True)
        return 0
    listeners = Listeners(progress=console.progress, results=results)
    run = open_run(changes.network, chosen, listeners, changes=changes)
    _stop_on_signals(run)
    if changes.evolution is not None:
        console.evolution(changes.evolution)
    reader = Reader(run, changes)
    try:
        with _served(options, reader), reader.attending():
            report = run.run()
        console.summary(report)
    finally:
        run.close()
    return 0


def _served(options: argparse.Namespace, reader: Reader) -> AbstractContextManager[object]:
    """The answers of a run over HTTP as long as it lasts, if that was asked for."""
    if options.serve is None:
        return nullcontext()
    # Imported here: few runs are asked over HTTP.
    from millrace.api.server import Server

    server = Server(reader, options.serve)
    print(f"serving on {server.url}", file=sys.stderr, flush=True)
    return server


def _settings(given: Sequence[str]) -> dict[str, str]:
    """Settings of Spark, as they were given one by one."""
    for each in given:
        if "=" not in each:
            raise RequestError(f'"{each}" is no setting', hint="Write --set NAME=VALUE.")
    return dict(each.split("=", 1) for each in given)


def _shown(network: Network) -> Network:
    """The network with results that would be kept in memory shown on the console: nobody could ask for them."""
    return Network(tuple(map(_shown_query, network.queries)))


def _shown_query(query: Query) -> Query:
    if query.sink.connector.format != "memory":
        return query
    return replace(query, sink=Sink(query.name, Connector("console")))


def _bind_shown(declared: str, text: str, queries: Sequence[Query]) -> Amendment:
    """A request to the running network, its results shown as those of the file are."""
    amendment = bind_changes(declared, text, queries)
    shown = (Added(_shown_query(each.query)) if isinstance(each, Added) else each for each in amendment.changes)
    return replace(amendment, changes=tuple(shown))


def _read_shown(text: str, beside: str) -> NetworkFile:
    """A whole file, its results shown as those of the first are."""
    found = read_file(text, beside)
    return replace(found, network=_shown(found.network))


def _control(options: argparse.Namespace) -> Path | None:
    """The control folder: as given, or in the checkpoint."""
    if options.control is None and options.on != "virtual" and options.checkpoint is not None:
        return Path(options.checkpoint) / "control"
    return options.control


def _ending(options: argparse.Namespace) -> Ending:
    return "end" if options.until_end else "available" if options.available_now else "stopped"


def _stop_on_signals(run: Run) -> None:
    """Let the first signal end the run in order, and a second one end it at once."""

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        run.stop()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def _ask(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.statement == "-" else options.statement
    timeout = parse_interval(length("--timeout", options.timeout)) / 1e6
    for answer in ask(options.folder, text, timeout):
        print(json.dumps(answer) if options.json else answer_text(answer))
    return 0


def _why(options: argparse.Namespace) -> int:
    found = why(options.folder, parse_interval(length("--timeout", options.timeout)) / 1e6)
    print(json.dumps(found.data()) if options.json else found)
    return 0


def _check(options: argparse.Namespace) -> int:
    _, network = _read(options.file)
    plan = physical(network)
    plan.whole()
    file_sinks(network.queries, relayed=True)
    for stream in network.streams():
        if not is_native(stream.connector):
            open_input(stream, plan.columns_read(stream.name), None, None)
    streams, queries = len(network.streams()), len(network.queries)
    print(f"{options.file}: no fault (streams: {streams}, queries: {queries})")
    return 0


def _explain(options: argparse.Namespace) -> int:
    plan = physical(_read(options.file)[1])
    print(explain(plan, expected(options.rate, options.pair_cost, plan.network)))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    checks = doctor.report(deep=options.deep)
    if options.json:
        print(
            json.dumps([{"name": each.name, "ok": each.ok, "found": each.found, "hint": each.hint} for each in checks])
        )
    else:
        print(doctor.render(checks))
    return 0 if all(each.ok for each in checks) else 1


def _demo(options: argparse.Namespace) -> int:
    from millrace.experiments.demo import demo

    return demo(options.output)


def _figures(options: argparse.Namespace) -> int:
    from millrace.experiments.figures.command import list_figures, make_figures

    if options.name is None:
        return list_figures(as_json=options.json)
    return make_figures(options.name, options.output, as_json=options.json)


def _read(file: Path) -> tuple[str, Network]:
    """The text of a file, and the network that it describes."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        raise RequestError(
            f'there is no file "{file}"', hint="Name a file with CREATE STREAM and SELECT statements."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f'the file "{file}" cannot be read: {error}', hint="Name a text file with queries."
        ) from error
    _find_modules_beside(file)
    network = parse_network(text)
    if not network.queries:
        raise RequestError(f'"{file}" holds no query', hint="Add a SELECT or CREATE QUERY statement.")
    return text, network


def _find_modules_beside(file: Path) -> None:
    """Let the classes of aggregates be imported from the folder of a file, as Python does for a script."""
    folder = str(file.resolve().parent)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace", description="Continuous queries over streams, on Spark.")
    parser.add_argument("--version", action="version", version=f"millrace {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _run_arguments(commands)
    _control_arguments(commands)
    _why_arguments(commands)
    latest_arguments(commands)

    check = commands.add_parser("check", help="check the queries of a file without running them")
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(carry_out=_check)

    explained = commands.add_parser("explain", help="show how queries will be run")
    explained.add_argument("file", type=Path, metavar="FILE")
    explained.add_argument(
        "--rate",
        action="append",
        default=[],
        metavar="STREAM=ROWS",
        help="rows a second of a stream, to tell what in-order joins will cost; once a stream",
    )
    explained.add_argument("--pair-cost", metavar="INTERVAL", help="what comparing a pair of rows takes, such as 0.5ms")
    explained.set_defaults(carry_out=_explain)

    checkup = commands.add_parser("doctor", help="check this machine and say what to install")
    checkup.add_argument("--deep", action="store_true", help="start Spark too")
    checkup.add_argument("--json", action="store_true")
    checkup.set_defaults(carry_out=_doctor)

    shown = commands.add_parser("demo", help="a silent source, on Millrace and on stock Spark")
    shown.add_argument("--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the picture goes")
    shown.set_defaults(carry_out=_demo)

    made = commands.add_parser("figures", help="make a figure of the papers again, and hold its claims to it")
    made.add_argument("name", nargs="?", metavar="NAME", help='a figure, or "all"; without it they are listed')
    made.add_argument("--output", type=Path, default=Path("figures-output"), metavar="DIR", help="where files go")
    made.add_argument("--json", action="store_true", help="an object a line")
    made.set_defaults(carry_out=_figures)
    return parser


def _run_arguments(commands: Commands) -> None:
    run = commands.add_parser("run", help="run the queries of a file")
    _run_options(run)
    run.add_argument("--serve", type=int, metavar="PORT", help="answer over HTTP on this machine; 0 picks a port")
    served = commands.add_parser("serve", help="run the queries of a file, and answer over HTTP on this machine")
    _run_options(served)
    served.add_argument("--port", dest="serve", type=int, default=0, metavar="N", help="0, the default, picks one")


def _run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", type=Path, metavar="FILE")
    run.add_argument("--on", choices=HOSTS, default="spark", help="the host (default: spark)")
    ends = run.add_mutually_exclusive_group()
    ends.add_argument("--available-now", action="store_true", help="process what is there and stop; windows stay open")
    ends.add_argument("--until-end", action="store_true", help="take the end of every file as the end of its stream")
    run.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep state here, and go on from it")
    run.add_argument(
        "--dry-run", action="store_true", help="say what would become of the queries in the checkpoint, and stop"
    )
    run.add_argument("--master", default="local[*]", metavar="URL", help="Spark's master (default: local[*])")
    run.add_argument("--trigger", default="500 milliseconds", metavar="INTERVAL", help="between micro-batches on Spark")
    run.add_argument(
        "--stages", type=int, metavar="N", help="stateful stages of a new checkpoint on Spark, to leave room for more"
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.jars.packages=...; once a setting",
    )
    run.add_argument("--cost", metavar="INTERVAL", help="virtual time: what a row costs an operator")
    run.add_argument(
        "--control",
        type=Path,
        metavar="DIR",
        help="let `millrace control DIR` change queries (with a checkpoint: in it)",
    )
    run.add_argument("--profile", action="store_true", help="say where the time of micro-batches on Spark went")
    run.add_argument("--json", action="store_true", help="results and summary as JSON lines")
    run.add_argument("-v", "--verbose", action="store_true", help="log more of Spark")
    run.set_defaults(carry_out=_run)


def _control_arguments(commands: Commands) -> None:
    control = commands.add_parser("control", help="change the queries of a run, or list them")
    control.add_argument("folder", type=Path, metavar="DIR", help="the --control or --checkpoint folder of the run")
    control.add_argument(
        "statement",
        metavar="STATEMENT",
        help="ADD QUERY, DROP QUERY, ALTER QUERY, SHOW QUERIES or SHOW WAITS; - reads stdin",
    )
    control.add_argument("--timeout", default="10 seconds", metavar="INTERVAL", help="how long to wait for the answer")
    control.add_argument("--json", action="store_true", help="an object a line")
    control.set_defaults(carry_out=_ask)


def _why_arguments(commands: Commands) -> None:
    asked = commands.add_parser("why", help="say which stream holds results back, since when, and what releases them")
    asked.add_argument(
        "folder", type=Path, metavar="DIR", help="the --checkpoint folder of a run, or --control of one at work"
    )
    asked.add_argument("--timeout", default="10 seconds", metavar="INTERVAL", help="how long to wait for the answer")
    asked.add_argument("--json", action="store_true", help="one object")
    asked.set_defaults(carry_out=_why)
