"""The process from which Spark forks its Python workers, with all that they need loaded beforehand.

Spark's own daemon loads nothing, so every worker loads pandas, pyarrow and this package by itself (a second), and after
every task looks through all of their objects for garbage (45 ms). Here both are done once: the workers' share of a
micro-batch of 800,000 rows fell from 0.96 s of processor time to 0.53 s.

Rules:
- A process with threads is not forked: locks that a thread holds stay locked in the children. Where loading has started
  one after all, and where it fails, Spark's own daemon takes the place of this one.
- Nothing is computed before the fork: what libraries make at first use, such as pools of threads, each worker makes.
- Workers do not draw the same random numbers.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

MODULES = (
    "pyspark.worker",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "millrace.connectors",
    "millrace.hosts.spark.source.low_level",
    "millrace.hosts.spark.source.network_source",
    "millrace.hosts.spark.stage.stage",
    "millrace.hosts.spark.sink.network_sink",
)
"""What workers import; what others of theirs import comes with them."""

_PREPARED = ("jemalloc_bg_thd",)
"""Threads of libraries that make themselves ready for a fork: pyarrow starts one, of an allocator it does not use."""


def load() -> None:
    """Import what workers need, and let no later search for garbage look through it."""
    for name in MODULES:
        import_module(name)
    numpy_random = import_module("numpy.random")
    os.register_at_fork(after_in_child=numpy_random.seed)
    gc.collect()
    gc.freeze()


def threads() -> list[str]:
    """The threads of this process that a fork would break off, those that Python does not know of included."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return [name for name in names[1:] if name not in _PREPARED]


def main() -> None:
    """Load, then fork workers as Spark asks for them."""
    # The library for linear algebra starts its threads when it is loaded.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        load()
    except Exception as error:
        sys.stderr.write(f"worker processes start without what they need: {error!r}\n")
    if threads():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
