"""The command line as a user starts it: in this process, which costs no start of Python, or in one of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from millrace.commands.command_line import main
from tests.terminal import Terminal

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "millrace"]
RunOn = Callable[..., subprocess.CompletedProcess[str]]
"""What the fixture `run_on` gives."""


def environment() -> dict[str, str]:
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def millrace_process(
    *arguments: object, folder: Path, settings: Mapping[str, str] | None = None, out: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """A command run to its end in a folder, in a process of its own; `settings` join its environment."""
    command, around = [*COMMAND, *map(str, arguments)], {**environment(), **(settings or {})}
    return subprocess.run(
        command, stdout=out, stderr=subprocess.PIPE, text=True, cwd=folder, timeout=300, check=False, env=around
    )


def on_terminal(*arguments: object, folder: Path, columns: int = 80) -> tuple[int, list[str]]:
    """A command run to its end on a terminal of so many columns: its exit code, and the lines that it left there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    around = {**environment(), "TERM": "xterm"}
    command = [*COMMAND, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=around)
    os.close(theirs)
    terminal = Terminal(columns)
    with suppress(OSError):
        # The end of a terminal is an error.
        while said := os.read(ours, 1 << 16):
            terminal.write(said.decode("utf-8", "replace").replace("\r\n", "\n"))
    os.close(ours)
    return process.wait(timeout=300), terminal.lines()


def millrace(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command run to its end in a folder, in this process: on Spark, in the session that is open here."""
    out, err = StringIO(), StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    command, paths = [str(each) for each in arguments], list(sys.path)
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            code = main(command)
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.path[:] = paths
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def check_refused(script: Path, said: str) -> None:
    """Assert that a script is refused before anything is read, with words that say what to do."""
    ran = millrace("run", script, "--on", "local", "--until-end", folder=script.parent)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def absolute(script: Path) -> Path:
    """The script, with its paths made absolute: a Spark session that is shared has a working folder of its own."""
    script.write_text(re.sub(r"path '(?!/)", f"path '{script.parent}/", script.read_text()))
    return script


class Started:
    """A command that is running, with all its processes in one group."""

    def __init__(self, *arguments: object, folder: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment(),
            start_new_session=True,
        )

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def interrupt(self, *, everything: bool = False) -> tuple[int, str, str]:
        """End it as Ctrl-C does: the exit code, and what it said."""
        (os.killpg if everything else os.kill)(self.process.pid, signal.SIGINT)
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=300)


def chatter(said: str) -> list[str]:
    """The lines of standard error that are neither progress nor summary."""
    ours = re.compile(
        r"stopping \.\.\.$|[\d,]+ rows |  [\w]+: [\d,]+ rows|  -> \w+: [\d,]+ results|"
        r"  [\d,]+ rows or partial results held|  \w+: queue |"
        r"(starting Spark|waiting for the first micro-batch): \d+ s$"
    )
    return [line for line in said.splitlines() if not ours.match(line)]


def wait_for(condition: Callable[[], object], seconds: float = 240) -> None:
    """Return when the condition holds."""
    until = monotonic() + seconds
    while not condition():
        assert monotonic() < until, "waited in vain"
        sleep(0.01)


def eventually(found: Callable[[], object], wanted: object, seconds: float = 240) -> None:
    """Return when a call gives what is wanted."""
    until = monotonic() + seconds
    while (given := found()) != wanted:
        assert monotonic() < until, given
        sleep(0.01)
