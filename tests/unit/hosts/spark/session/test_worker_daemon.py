"""The process from which workers are forked: what it has loaded, and when it gives way to Spark's own."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from millrace.hosts.spark.session.worker_daemon import MODULES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="set on Linux only")

_LOADED = """
import gc, os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import millrace.hosts.spark.session.worker_daemon as daemon
daemon.load()
import numpy, pyarrow.compute
assert daemon.threads() == [], daemon.threads()
assert len(gc.get_objects()) < 5_000 < gc.get_freeze_count()
assert "sqlglot" not in sys.modules
draws = []
for _ in range(2):
    reader, writer = os.pipe()
    if os.fork() == 0:
        assert pyarrow.compute.sum(pyarrow.array(range(1_000_000))).as_py() == 499_999_500_000
        os.write(writer, str(numpy.random.random()).encode())
        os._exit(0)
    draws.append(os.read(reader, 100))
print(len(set(draws)), all(draws))
"""

_DAEMON = """
import sys, types
import millrace.hosts.spark.session.worker_daemon as daemon
daemon.MODULES = {modules}
daemon.threads = lambda: {threads}
daemon.os.execv = lambda python, arguments: sys.exit("exec " + " ".join(arguments[1:]))
import pyspark.daemon
pyspark.daemon.manager = lambda: sys.exit("manager")
daemon.main()
"""

_PLANNED = """
import sys
import pyarrow as pa
import millrace.hosts.spark.source.network_source
from millrace.kernel.columns.expressions import Column
assert Column("a").type_in(pa.schema([("a", pa.int64())])) == pa.int64()
print([name for name in ("pandas", "sqlglot") if name in sys.modules])
"""


def said(program: str) -> tuple[str, str]:
    ran = subprocess.run([sys.executable, "-c", program, "pyspark.worker"], capture_output=True, text=True)
    return ran.stdout.strip(), ran.stderr.strip()


def test_all_that_it_loads_is_there() -> None:
    assert all(find_spec(name) for name in MODULES)


@pytest.mark.slow
def test_workers_are_forked_without_threads_garbage_or_equal_random_numbers() -> None:
    assert said(_LOADED) == ("2 True", "")


def test_a_process_with_threads_gives_way() -> None:
    program = _DAEMON.format(modules=("json",), threads=["pool"])
    assert said(program) == ("", "exec -m pyspark.daemon pyspark.worker")


def test_what_cannot_be_loaded_is_done_without() -> None:
    _, error = said(_DAEMON.format(modules=("no_such_module",), threads=[]))
    assert "No module named 'no_such_module'" in error
    assert error.endswith("manager")


@pytest.mark.slow
def test_planning_loads_neither_pandas_nor_sqlglot() -> None:
    """The driver's Python processes plan and list files; pandas alone would double what they take to start."""
    assert said(_PLANNED) == ("[]", "")
