"""A standalone cluster of Spark on this machine: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST = "127.0.0.1"


class NoClusterError(Exception):
    """Why a cluster could not be started here."""


@dataclass
class Cluster:
    """A master and its workers; `environment` is what their processes know."""

    folder: Path
    environment: Mapping[str, str]
    port: int = field(default_factory=lambda: _free_port())
    page: int = field(default_factory=lambda: _free_port())
    master: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """What --master is given."""
        return f"spark://{HOST}:{self.port}"

    def start(self, workers: int = 2) -> None:
        """Start all, and return when the workers are known to the master."""
        self.master = self._process("master.Master", "--port", self.port, "--webui-port", self.page)
        self._wait(lambda: self.state() is not None, "the master did not start")
        for number in range(workers):
            own = self.folder / f"worker-{number}"
            options = ["--cores", 1, "--memory", "1g", "--webui-port", 0, "--work-dir", own]
            self.workers.append(self._process("worker.Worker", *options, self.url))
        self._wait(lambda: (self.state() or {}).get("aliveworkers") == workers, "the workers did not start")

    def stop(self) -> None:
        """End all, with what they have started."""
        for process in filter(None, [*self.workers, self.master]):
            for each in [*children_of(process.pid), process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.wait(300)

    def state(self) -> dict[str, Any] | None:
        """What the master says of its workers and applications; None if it does not answer."""
        try:
            with urlopen(f"http://{HOST}:{self.page}/json/", timeout=5) as answer:
                return dict(json.load(answer))
        except (OSError, ValueError):
            return None

    def executors(self) -> list[list[int]]:
        """By worker the executors that it runs."""
        return [[each for each in children_of(worker.pid) if _runs(each, "Executor")] for worker in self.workers]

    def kill_executor(self, worker: int) -> None:
        """End a worker's executors at once."""
        for each in self.executors()[worker]:
            os.kill(each, signal.SIGKILL)

    def kill_worker(self, worker: int) -> None:
        """End a worker at once, and all that it runs."""
        os.kill(self.workers[worker].pid, signal.SIGSTOP)
        self.kill_executor(worker)
        self.workers[worker].kill()

    def _process(self, name: str, *options: object) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}-{len(self.workers)}.log").open("wb")
        command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", HOST, *map(str, options)]
        return subprocess.Popen(command, stdout=log, stderr=log, env=dict(self.environment), start_new_session=True)

    def _wait(self, condition: Any, fact: str, seconds: float = 120) -> None:
        until = time.monotonic() + seconds
        while not condition():
            ended = [each for each in [self.master, *self.workers] if each is not None and each.poll() is not None]
            if ended or time.monotonic() > until:
                raise NoClusterError(f"{fact}: {self._last_words()}")
            time.sleep(0.1)

    def _last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return lines[-1] if lines else "it said nothing"


@contextmanager
def cluster_in(folder: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """A cluster that runs for a block."""
    made = Cluster(folder, environment)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def children_of(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def _runs(process: int, name: str) -> bool:
    """Whether a process was started with that word among its arguments."""
    with suppress(OSError):
        return name.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
