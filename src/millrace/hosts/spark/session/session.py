"""A Spark session that is quiet, quick to start and set for our checkpoints.

Rules:
- Spark logs to a file. The terminal belongs to the user.
- Settings that a checkpoint depends on are here and nowhere else; a user's settings may add to them.
- What keeps Spark from starting is an error of Millrace, with what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.errors import RequestError, RunError
from millrace.hosts.spark.session.class_archive import archive_options, folder_until_exit, kept_folder, lean_home
from millrace.hosts.spark.session.shipped_code import PACKAGE, ship

LEAST_JAVA = 17
JAVA_PATIENCE = 600.0
"""Seconds that `java -version` may take: on a machine that is busy with other work it may be slow."""

CHECKPOINT_SETTINGS = {
    # A checkpoint is bound to these from its first batch on.
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
QUIET_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark keeps of jobs that have ended is for its user interface: by default it grows for a thousand of them.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "100",
}
SPEED_SETTINGS = {
    # It holds for some kinds of Python code and not for others, and so gives each a daemon and workers of its own:
    # twice the processes, twice the imports. What fails says so in our words anyway.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Renames on local disk are atomic: the slower file manager for object stores is not needed.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # It needs a file system whose renames replace files. That of Hive, which Spark takes otherwise, does not, and says
    # nothing: a batch that is run again would keep the state of the attempt that was killed.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.adaptive.enabled": "false",
    # A batch has a few rows with large blobs: compiling code for them costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.locality.wait": "0",
    # For the same reason a batch is cut by its bytes on the way to Python, not by its rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # What stays on this machine need not be made small for the way. The gain is within what measurements scatter.
    "spark.shuffle.compress": "false",
}
FORKING_SETTINGS = {
    # Rows reach the workers by a socket of the file system, not by one of the network: on a quiet machine it saved a
    # quarter of what Java and Python spend on a micro-batch of 800,000 rows; on a busy one nothing could be told.
    "spark.python.unix.domain.socket.enabled": "true",
    # See there. A cluster's executors have the package only when their workers run, too late for the daemon.
    "spark.python.daemon.module": "millrace.hosts.spark.session.worker_daemon",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JAVA_SETTINGS = {_JAVA_OPTIONS, "spark.driver.defaultJavaOptions", "spark.driver.memory"}
_JAVA_VARIABLES = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY"}
# The work is done in Python; what is left to Java is planning, which the second compiler slows for minutes
# while it competes for the cores (micro-batches of 0.65 s became 0.43 s on two busy ones). Where Java reads the rows
# it pays: 1.25 s became 1.04 s for 800,000 of them.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_RUNS: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""How many runs are at work in each session that one of them has opened."""
_JOINING = Lock()
"""Held while a session is found or opened, and while it is ended: no run may join one that is ending."""
_LOG = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


def open_session(
    master: str,
    *,
    log_file: Path,
    verbose: bool = False,
    settings: Mapping[str, str] | None = None,
    reads_rows: bool = False,
) -> SparkSession:
    """A Spark session on `master` whose log is in `log_file`; `verbose` logs more.

    `reads_rows` says that Spark itself shall read streams, row by row.
    """
    require_java()
    _prepare_process()
    log_file = log_file.resolve()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    folder = folder_until_exit()
    java_options = [_log_option(folder, log_file, "INFO" if verbose else "WARN")]
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        java_options += _prepare_home(folder, settings or {})
    builder = SparkSession.Builder().appName("millrace").master(with_retries(master))
    if master.startswith("local") and not reads_rows:
        java_options.append(_QUICK_COMPILER)
    for name, value in _settings(master, java_options, settings or {}).items():
        builder = builder.config(name, value)
    session = _start(builder, log_file)
    ship(session)
    return session


@contextmanager
def borrowed_session(master: str, *, log_file: Path) -> Iterator[SparkSession]:
    """The session of this process if there is one, or a new one that ends with the block."""
    running = running_session()
    session = running or open_session(master, log_file=log_file)
    try:
        yield session
    finally:
        if running is None:
            session.stop()


def running_session() -> SparkSession | None:
    """The session of this process, if it has a live one."""
    session = SparkSession._instantiatedSession
    return session if session is not None and session.sparkContext._jsc is not None else None


def join_session(given: SparkSession | None, open_one: Callable[[], SparkSession]) -> tuple[SparkSession, bool]:
    """The session that a run is to work in: the one given, that of this process, or a new one.

    And True if the run has to leave it: a session that no run has opened is not ended by one.
    """
    with _JOINING:
        session = given or running_session()
        ours = session is None or session.sparkContext in _RUNS
        session = open_one() if session is None else prepared(session)
        if ours:
            _RUNS[session.sparkContext] = _RUNS.get(session.sparkContext, 0) + 1
        return session, ours


def leave_session(session: SparkSession) -> None:
    """Leave a session that a run has joined; the last run ends it."""
    with _JOINING:
        context = session.sparkContext
        _RUNS[context] -= 1
        if not _RUNS[context]:
            del _RUNS[context]
            session.stop()


def prepared(session: SparkSession) -> SparkSession:
    """A session that the user has opened, with the settings that checkpoints need."""
    for name, value in CHECKPOINT_SETTINGS.items():
        session.conf.set(name, value)
    return session


def parallelism(session: SparkSession, *, patience: float = 30.0, calm: float = 2.0) -> int:
    """How many tasks can run at once; on a cluster waits for its executors, until none has come for a while."""
    context = session.sparkContext
    if str(context.master).startswith("local"):
        return context.defaultParallelism
    # Spark counts the driver's own block manager as an executor.
    known, since, until = 1, time.monotonic(), time.monotonic() + patience
    while time.monotonic() < until and (known == 1 or time.monotonic() - since < calm):
        found = int(context._jsc.sc().getExecutorMemoryStatus().size())
        if found != known:
            known, since = found, time.monotonic()
        time.sleep(min(0.1, calm))
    return context.defaultParallelism


def with_retries(master: str) -> str:
    """The master URL, with four attempts a task if it is a local one: a worker that dies is not the end.

    >>> with_retries("local[2]"), with_retries("spark://host:7077")
    ('local[2,4]', 'spark://host:7077')
    """
    if master == "local":
        return "local[1,4]"
    return re.sub(r"^local\[([^,\]]+)\]$", r"local[\1,4]", master)


def java_command() -> str | None:
    """The Java that Spark would use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def java_version() -> tuple[str, int] | None:
    """The version of the Java that Spark would use, as text and as its major number; None if there is none."""
    try:
        command = [java_command() or "java", "-version"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=JAVA_PATIENCE)
    except subprocess.TimeoutExpired:
        raise RequestError(
            f'"{command[0]} -version" did not answer within {JAVA_PATIENCE:g} s',
            hint="Run it by hand. If it hangs there too, set JAVA_HOME to another Java.",
        ) from None
    except OSError:
        return None
    found = re.search(r'version "((\d+)(?:\.(\d+))?[^"]*)"', ran.stderr + ran.stdout)
    if not found:
        return None
    # Java 8 and its elders call themselves 1.8 and so on.
    major = found.group(3) if found.group(2) == "1" and found.group(3) else found.group(2)
    return found.group(1), int(major)


def require_java() -> None:
    """Refuse, with what to install, unless there is a Java that Spark can run on."""
    hint = f"Install a Java runtime, version {LEAST_JAVA} or 21 (openjdk-17-jre-headless), or set JAVA_HOME to one."
    found = java_version()
    if found is None:
        raise RequestError("Spark needs Java, and none was found", hint=hint)
    if found[1] < LEAST_JAVA:
        raise RequestError(f'Spark needs Java {LEAST_JAVA} or later, and "{found[0]}" was found', hint=hint)


def log_tail(log_file: Path, lines: int = 20) -> str:
    """The last lines of the log; empty if there is none."""
    if not log_file.is_file():
        return ""
    return "\n".join(log_file.read_text(errors="replace").splitlines()[-lines:])


def _settings(master: str, java_options: Sequence[str], users: Mapping[str, str]) -> dict[str, str]:
    """Our settings, then the user's; Java's options are joined, for they are many in one setting."""
    chosen = {**CHECKPOINT_SETTINGS, **QUIET_SETTINGS, **SPEED_SETTINGS}
    if master.startswith("local"):
        chosen |= LOCAL_SETTINGS | (FORKING_SETTINGS if sys.platform == "linux" else {})
    own = users.get(_JAVA_OPTIONS, "")
    # Java takes one archive: the user's.
    java_options = [each for each in java_options if "Archive" not in own or "Archive" not in each] + [own]
    return {**chosen, **users, _JAVA_OPTIONS: " ".join(java_options).strip()}


def _prepare_home(folder: Path, users: Mapping[str, str]) -> list[str]:
    """Let Spark start from a home that is the same in every run, where there can be one; Java's options for that."""
    found = java_version()
    kept = kept_folder(java_command(), found[0] if found else "")
    home = str(lean_home(kept or folder))
    ours = os.environ.setdefault("SPARK_HOME", home) == home
    plain = not (users.keys() & _JAVA_SETTINGS or os.environ.keys() & _JAVA_VARIABLES)
    return archive_options(kept, java_command(), write=plain) if kept and ours else []


def _prepare_process() -> None:
    """Let the worker processes run this Python and find this package, and drop warnings about versions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(PACKAGE.parent) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGE.parent), *filter(None, paths)])
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    warnings.filterwarnings("ignore", module=r"pyspark\..*")


def _log_option(folder: Path, log_file: Path, level: str) -> str:
    """The Java option that sends the log to the file."""
    path = folder / "log4j2.properties"
    path.write_text(_LOG.format(level=level, path=log_file.as_posix()))
    return f'"-Dlog4j2.configurationFile={path.as_uri()}"'


def _start(builder: SparkSession.Builder, log_file: Path) -> SparkSession:
    try:
        with _output_into(log_file):
            return _hushed(builder.getOrCreate())
    except (PySparkException, Py4JError) as error:
        raise RunError(
            f"Spark did not start; the end of its log:\n{log_tail(log_file) or error}",
            hint=f'Check --master; the whole log is "{log_file}".',
        ) from error


def _hushed(session: SparkSession) -> SparkSession:
    """The session, without the traceback that stopping a query would print.

    Spark interrupts the query's thread and with it closes its connection for accumulators, which ours are not.
    """
    server = session.sparkContext._accumulatorServer
    if server is not None:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    return session


@contextmanager
def _output_into(log_file: Path) -> Iterator[None]:
    """A block whose child processes write to the log file what they would write to the terminal.

    Java may go on for a while when the run has ended: a reader of the run's output shall not wait for it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with log_file.open("ab") as log:
        for number in kept:
            os.dup2(log.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, place in kept.items():
            os.dup2(place, number)
            os.close(place)
