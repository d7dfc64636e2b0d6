"""The command line: arguments in, one call out.

Exit code 0: done; 1: the run failed; 2: the request was wrong. Messages go to standard error, without a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from millrace import __version__, doctor
from millrace.connectors.inputs import open_input
from millrace.console import Console
from millrace.errors import MillraceError, RequestError
from millrace.hosts.outputs import file_sinks
from millrace.hosts.report import Ending, Listeners
from millrace.language import parse_interval, parse_network
from millrace.plan.explain import explain
from millrace.plan.nodes import Connector, Network, Sink
from millrace.plan.stages import physical
from millrace.runs import HOSTS, Run, RunOptions, open_run


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit code."""
    options = _parser().parse_args(arguments)
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
    network = _shown(_read(options.file))
    console = Console(as_json=options.json)
    shown = {query.name for query in network.queries if query.sink.connector.format == "console"}
    listeners = Listeners(
        progress=console.progress,
        results=lambda query, rows: console.results(query, rows) if query in shown else None,
    )
    cost = None if options.cost is None else parse_interval(options.cost)
    trigger = f"{parse_interval(options.trigger) // 1_000} milliseconds"
    run = open_run(
        network,
        RunOptions(options.on, _ending(options), options.checkpoint, options.master, trigger, cost, options.verbose),
        listeners,
    )
    _stop_on_signals(run)
    try:
        console.summary(run.run())
    finally:
        run.close()
    return 0


def _shown(network: Network) -> Network:
    """The network with results that would be kept in memory shown on the console: nobody could ask for them."""
    console = Connector("console")
    return Network(
        tuple(
            replace(query, sink=Sink(query.name, console)) if query.sink.connector.format == "memory" else query
            for query in network.queries
        )
    )


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


def _check(options: argparse.Namespace) -> int:
    network = _read(options.file)
    plan = physical(network)
    file_sinks(network.queries)
    for stream in network.streams():
        open_input(stream, plan.columns_read(stream.name), None, None)
    streams, queries = len(network.streams()), len(network.queries)
    print(f"{options.file}: no fault (streams: {streams}, queries: {queries})")
    return 0


def _explain(options: argparse.Namespace) -> int:
    print(explain(physical(_read(options.file))))
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
    from millrace.demo import demo

    return demo(options.output)


def _read(file: Path) -> Network:
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
    network = parse_network(text)
    if not network.queries:
        raise RequestError(f'"{file}" holds no query', hint="Add a SELECT or CREATE QUERY statement.")
    return network


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace", description="Continuous queries over streams, on Spark.")
    parser.add_argument("--version", action="version", version=f"millrace {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run the queries of a file")
    run.add_argument("file", type=Path, metavar="FILE")
    run.add_argument("--on", choices=HOSTS, default="spark", help="the host (default: spark)")
    ends = run.add_mutually_exclusive_group()
    ends.add_argument("--available-now", action="store_true", help="process what is there and stop; windows stay open")
    ends.add_argument("--until-end", action="store_true", help="take the end of every file as the end of its stream")
    run.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep state here, and go on from it")
    run.add_argument("--master", default="local[*]", metavar="URL", help="Spark's master (default: local[*])")
    run.add_argument("--trigger", default="500 milliseconds", metavar="INTERVAL", help="between micro-batches on Spark")
    run.add_argument("--cost", metavar="INTERVAL", help="virtual time: what a row costs an operator")
    run.add_argument("--json", action="store_true", help="results and summary as JSON lines")
    run.add_argument("-v", "--verbose", action="store_true", help="log more of Spark")
    run.set_defaults(carry_out=_run)

    check = commands.add_parser("check", help="check the queries of a file without running them")
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(carry_out=_check)

    explained = commands.add_parser("explain", help="show how queries will be run")
    explained.add_argument("file", type=Path, metavar="FILE")
    explained.set_defaults(carry_out=_explain)

    checkup = commands.add_parser("doctor", help="check this machine and say what to install")
    checkup.add_argument("--deep", action="store_true", help="start Spark too")
    checkup.add_argument("--json", action="store_true")
    checkup.set_defaults(carry_out=_doctor)

    shown = commands.add_parser("demo", help="a silent source, on Millrace and on stock Spark")
    shown.add_argument("--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the picture goes")
    shown.set_defaults(carry_out=_demo)
    return parser


if __name__ == "__main__":
    sys.exit(main())
