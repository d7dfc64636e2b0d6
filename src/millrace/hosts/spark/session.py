"""A Spark session that is quiet, quick to start and set for our checkpoints.

Rules:
- Spark's own words go to a log file. The terminal belongs to the user.
- Settings that a checkpoint depends on are here and nowhere else; a user's settings may add to them.
- What keeps Spark from starting is said in our words, with what to install.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.errors import RequestError, RunError

LEAST_JAVA = 17

_PACKAGE = Path(__file__).resolve().parents[2]

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
}
SPEED_SETTINGS = {
    # Renames on local disk are atomic: the slower file manager for object stores is not needed.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.adaptive.enabled": "false",
    # A batch has a few rows with large blobs: compiling code for them costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.locality.wait": "0",
    # For the same reason a batch is cut by its bytes on the way to Python, not by its rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# The work is done in Python; what is left to Java is planning, which the second compiler slows for minutes
# while it competes for the cores (micro-batches of 0.65 s became 0.43 s on two busy ones).
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
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
    app: str = "millrace",
    log_file: Path,
    verbose: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session on `master` whose log is in `log_file`; `verbose` logs more."""
    require_java()
    _prepare_process()
    log_file = log_file.resolve()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    folder = _folder_until_exit()
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_HOME", str(_lean_home(folder)))
    log_option = _log_option(folder, log_file, "INFO" if verbose else "WARN")
    builder = SparkSession.Builder().appName(app).master(with_retries(master))
    for name, value in _settings(master, log_option, folder, settings or {}).items():
        builder = builder.config(name, value)
    return _start(builder, log_file)


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


def with_retries(master: str) -> str:
    """The master URL, with four attempts a task if it is a local one: a worker that dies is not the end.

    >>> with_retries("local[2]"), with_retries("spark://host:7077")
    ('local[2,4]', 'spark://host:7077')
    """
    if master == "local":
        return "local[1,4]"
    return re.sub(r"^local\[([^,\]]+)\]$", r"local[\1,4]", master)


def java_version() -> tuple[str, int] | None:
    """The version of the Java that Spark would use, as text and as its major number; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    try:
        ran = subprocess.run([java or "java", "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
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


def _settings(master: str, log_option: str, folder: Path, users: Mapping[str, str]) -> dict[str, str]:
    """Our settings, then the user's; Java's options are joined, for they are many in one setting."""
    chosen = {**CHECKPOINT_SETTINGS, **QUIET_SETTINGS, **SPEED_SETTINGS}
    java_options = [log_option]
    if master.startswith("local"):
        chosen |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        java_options.append(_QUICK_COMPILER)
    else:
        chosen["spark.submit.pyFiles"] = str(_zipped_package(folder))
    java_options.append(users.get(_JAVA_OPTIONS, ""))
    return {**chosen, **users, _JAVA_OPTIONS: " ".join(java_options).strip()}


def _prepare_process() -> None:
    """Let the worker processes run this Python and find this package, and drop warnings about versions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(_PACKAGE.parent) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_PACKAGE.parent), *filter(None, paths)])
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    warnings.filterwarnings("ignore", module=r"pyspark\..*")


def _folder_until_exit() -> Path:
    """A folder for what Spark reads while it runs."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _lean_home(folder: Path) -> Path:
    """Spark's home without its zipped Python part, so that workers import the installed one.

    From the zip every worker process compiles PySpark anew: 0.8 s a process instead of 0.2 s, seven times a start.
    """
    installed, home = Path(pyspark.__file__).parent, folder / "spark"
    home.mkdir()
    for part in installed.iterdir():
        if part.name in ("bin", "conf", "jars", "sbin"):
            (home / part.name).symlink_to(part)
    return home


def _log_option(folder: Path, log_file: Path, level: str) -> str:
    """The Java option that sends the log to the file."""
    path = folder / "log4j2.properties"
    path.write_text(_LOG.format(level=level, path=log_file.as_posix()))
    return f'"-Dlog4j2.configurationFile={path.as_uri()}"'


def _zipped_package(folder: Path) -> Path:
    """The package as a zip, for executors on other machines."""
    path = folder / "millrace.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file in sorted(_PACKAGE.rglob("*.py")):
            package.write(file, file.relative_to(_PACKAGE.parent))
    return path


def _start(builder: SparkSession.Builder, log_file: Path) -> SparkSession:
    try:
        with _stderr_into(log_file):
            return _hushed(builder.getOrCreate())
    except (PySparkException, Py4JError) as error:
        raise RunError(
            f"Spark did not start; its last words:\n{log_tail(log_file) or error}",
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
def _stderr_into(log_file: Path) -> Iterator[None]:
    """A block whose child processes write to the log file what they would write to the terminal."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log_file.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
