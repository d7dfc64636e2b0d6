"""Tools for testing queries: text tables, a bench with a manual clock, the hosts behind one call, pytest fixtures.

- bench: a network with a manual clock; hosts: every host behind one call; tables: rows as text; fixtures: for pytest
- simulated_files: a disk that forgets what was not synced; simulation/: the local host under faults, by a seed

>>> from millrace.testing import Bench
>>> bench = Bench('''
...     CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
...     CREATE QUERY q AS SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;
... ''')
>>> bench.push(
...     "s",
...     '''
...     k | ts
...     a | 00:00:10
...     a | 00:00:50
...     b | 00:01:10
... ''',
... )
>>> [(row["k"], row["n"]) for row in bench.results("q")]
[('a', 2)]
"""

from millrace.testing.bench import Bench
from millrace.testing.hosts import HOSTS, Host, in_memory
from millrace.testing.simulation.simulate import SimulationFailed, simulate
from millrace.testing.tables import Rows, table

__all__ = ["HOSTS", "Bench", "Host", "Rows", "SimulationFailed", "in_memory", "simulate", "table"]
