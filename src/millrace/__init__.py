"""Continuous queries over skewed, bursty, late and out-of-order streams, on Spark.

>>> import millrace as mr
>>> net = mr.Network()
>>> link = net.stream(
...     "link", "srcIP STRING, len INT, ts TIMESTAMP", time="ts", source="generate", rate=50, seconds=120, keys=2
... )
>>> per_minute = link.window(range="1 minute").group_by("srcIP").agg(n="count(*)", bytes="sum(len)")
>>> handle = net.query("per_minute", per_minute).run(on="local", until="end")
>>> handle.results("per_minute").column_names
['window_start', 'window_end', 'srcIP', 'n', 'bytes']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.api.dataframes import spark_session
    from millrace.api.handle import Handle
    from millrace.api.network import Network, Polled
    from millrace.api.relations import Relation
    from millrace.callers import debug
    from millrace.connectors.pushed import Pushed
    from millrace.connectors.source import PartitionSpan, Source, SourcePiece, Unreachable, UnreadPlace
    from millrace.errors import MillraceError
    from millrace.hosts.sinks.writers import Writer
    from millrace.kernel.columns.user_functions import columns
    from millrace.language import parse_network

__version__ = "0.1.0"

__all__ = [
    "Handle",
    "MillraceError",
    "Network",
    "PartitionSpan",
    "Polled",
    "Pushed",
    "Relation",
    "Source",
    "SourcePiece",
    "Unreachable",
    "UnreadPlace",
    "Writer",
    "columns",
    "debug",
    "parse_network",
    "spark_session",
]

_HOMES = {
    "Handle": "millrace.api.handle",
    "MillraceError": "millrace.errors",
    "Network": "millrace.api.network",
    "PartitionSpan": "millrace.connectors.source",
    "Polled": "millrace.api.network",
    "Pushed": "millrace.connectors.pushed",
    "Relation": "millrace.api.relations",
    "Source": "millrace.connectors.source",
    "SourcePiece": "millrace.connectors.source",
    "UnreadPlace": "millrace.connectors.source",
    "Unreachable": "millrace.connectors.source",
    "Writer": "millrace.hosts.sinks.writers",
    "columns": "millrace.kernel.columns.user_functions",
    "debug": "millrace.callers",
    "parse_network": "millrace.language",
    "spark_session": "millrace.api.dataframes",
}


def __getattr__(name: str) -> object:
    # Loaded on first use: every Spark worker process imports this package, and few need the language.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
