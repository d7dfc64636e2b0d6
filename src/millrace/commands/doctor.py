"""`millrace doctor`: check what a machine needs to run Millrace, each thing by trying it."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from millrace.api.terminal.phase_line import waiting
from millrace.commands.arguments import Commands, add_json, add_user_code, add_variables, read_network
from millrace.connectors.files.file_options import FORMATS, extension
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_writer import write_file
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.endpoints import Connector, Sink, Stream, Table
from millrace.plan.nodes.query_network import QueryNetwork

LEAST_PYTHON = (3, 11)
LEAST_JAVA = 17
LEAST_FREE_BYTES = 1_000_000_000
_PACKAGES = {
    "pyspark": ((4, 3), (4, 4)),
    "pyarrow": ((18,), (27,)),
    "pandas": ((2, 2), (3,)),
    "sqlglot": ((30,), (31,)),
}
_EXTRAS = {
    "kafka": ("kafka", "confluent-kafka"),
    "avro": ("avro", "fastavro"),
    "postgres": ("postgres", "psycopg"),
}
"""The extra of a connector, and the package that it brings."""
Version = tuple[int, ...]


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("doctor")
    command.add_argument("file", type=Path, nargs="?", metavar="FILE", help="say what the queries of a file need, too")
    add_user_code(command)
    add_variables(command)
    command.add_argument("--deep", action="store_true", help="start Spark too")
    add_json(command, "one array")
    command.set_defaults(carry_out=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    with waiting("starting Spark", sys.stderr) if options.deep and not options.json else nullcontext():
        checks = report(deep=options.deep)
    if options.file is not None:
        checks += extras_of(read_network(options).network)
    print(json.dumps([asdict(each) for each in checks]) if options.json else render(checks))
    return 0 if all(each.ok for each in checks) else 1


@dataclass(frozen=True, slots=True)
class Check:
    """One need: `ok` if it is met, what was found, and what to do if it is not met."""

    name: str
    ok: bool
    found: str
    hint: str = ""


def report(*, deep: bool = False) -> list[Check]:
    """Every check in turn; `deep` also starts a Spark session, which takes some seconds."""
    checks = [_python(), _java()]
    checks += [_package(name, least, below) for name, (least, below) in _PACKAGES.items()]
    checks += [_temporary_folder(), _free_disk()]
    checks += [_attempt(f"connector {format}", partial(_round_trip, format)) for format in FORMATS]
    if deep:
        checks.append(_attempt("spark session", _spark_session))
    return checks


def extras_of(network: QueryNetwork) -> list[Check]:
    """The extra packages that the connectors of a network need; each names a stream, table or sink that needs it."""
    endpoints: list[Stream | Table | Sink] = [
        *network.streams(),
        *network.tables(),
        *(query.sink for query in network.queries),
    ]
    users: dict[str, str] = {}
    for each in endpoints:
        # Of a connector, and of the format of its messages.
        for name in (each.connector.format, each.connector.options.get("format", "").lower()):
            users.setdefault(name, f'{type(each).__name__.lower()} "{each.name}"')
    return [_extra(extra, package, users[name]) for name, (extra, package) in _EXTRAS.items() if name in users]


def _extra(extra: str, package: str, user: str) -> Check:
    hint = f"Install it with pip install 'millrace[{extra}]'."
    try:
        return Check(f"extra {extra}", True, f"{package} {importlib.metadata.version(package)}, for {user}", hint)
    except importlib.metadata.PackageNotFoundError:
        return Check(f"extra {extra}", False, f"{package} is not installed, and {user} needs it", hint)


def render(checks: Sequence[Check]) -> str:
    """The checks as text, one per line, with a hint below each that failed.

    >>> print(render([Check("java", False, "none", "Install Java 17.")]))
    FAILED  java  none
            hint: Install Java 17.
    """
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{'ok' if check.ok else 'FAILED':6}  {check.name:{width}}  {check.found}")
        if not check.ok and check.hint:
            lines.append(f"        hint: {check.hint}")
    return "\n".join(lines)


def java_major(text: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_major('openjdk version "17.0.15" 2025-04-15'), java_major('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("python", sys.version_info >= LEAST_PYTHON, found, "Install Python 3.11 or newer.")


def _java() -> Check:
    hint = f"Install a Java runtime of version {LEAST_JAVA} or newer, or set JAVA_HOME to one."
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    try:
        ran = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.SubprocessError):
        return Check("java", False, f'"{command}" does not start', hint)
    text = ran.stderr + ran.stdout
    major = java_major(text)
    return Check("java", major is not None and major >= LEAST_JAVA, text.strip().partition("\n")[0], hint)


def _package(name: str, least: Version, below: Version) -> Check:
    wanted = f"{name}>={_dotted(least)},<{_dotted(below)}"
    hint = f"Install it with pip install '{wanted}'."
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", hint)
    version = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    return Check(name, least <= version < below, found, hint)


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _free_disk() -> Check:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    hint = f"Free some space below {folder}, or set TMPDIR to a folder with more."
    return Check("free disk", free >= LEAST_FREE_BYTES, f"{free / 1e9:.1f} GB in {folder}", hint)


def _temporary_folder() -> Check:
    def write() -> str:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"millrace")
        return tempfile.gettempdir()

    return _attempt("temporary folder", write, "Set TMPDIR to a folder that you may write to.")


def _round_trip(format: str) -> str:
    columns = {"word": ["a", "", None], "count": [1, None, -3], "time": pa.array([0, 1, None], TIMESTAMP)}
    rows = pa.table(columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows{extension(format)}")
        write_file(path, format, rows)
        back = pa.Table.from_batches([batch.rows for batch in read_file(path, Connector(format), rows.schema)])
    if not back.equals(rows):
        raise ValueError("what was written is not what was read")
    return f"{rows.num_rows} rows written and read back"


def _spark_session() -> str:
    # Spark is imported here alone: every other check must work without it.
    from millrace.hosts.spark.session.session import borrowed_session

    with (
        tempfile.TemporaryDirectory() as folder,
        borrowed_session("local[1]", log_file=Path(folder, "spark.log")) as session,
    ):
        return f"Spark {session.version} counted to {session.range(10).count()}"


def _attempt(name: str, attempt: Callable[[], str], hint: str = "") -> Check:
    """A check that is met when `attempt` does not fail."""
    try:
        return Check(name, True, attempt())
    except Exception as error:
        return Check(name, False, f"{type(error).__name__}: {error}", hint or getattr(error, "hint", ""))
