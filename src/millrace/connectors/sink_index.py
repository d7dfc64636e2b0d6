"""Which sinks are written by a writer, and where its class stands: the user's own, those shipped, those of packages.

A package has a sink if it declares an entry point of the group `millrace.sinks`: the name is the format, the value the
place of the class. A format of Millrace's own cannot be taken.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

from millrace.plan.nodes.endpoints import Connector

PYTHON_SINK = "python"
"""The sink that gives results to a writer of the user's own."""
GROUP = "millrace.sinks"
"""The group of entry points by which packages declare sinks."""
_TAKEN = ("csv", "json", "parquet", "memory", "console", PYTHON_SINK)
_SHIPPED = MappingProxyType(
    {
        "kafka": "millrace.connectors.kafka.kafka_writer:KafkaWriter",
        "postgres": "millrace.connectors.postgres.postgres_writer:PostgresWriter",
    }
)


@cache
def writer_formats() -> MappingProxyType[str, str]:
    """The places of writers by the format that names each.

    >>> writer_formats()["postgres"].rpartition(":")[2]
    'PostgresWriter'
    """
    declared = {each.name: each.value for each in entry_points(group=GROUP) if each.name not in _TAKEN}
    return MappingProxyType({**declared, **_SHIPPED})


def has_writer(connector: Connector) -> bool:
    """True if a sink is written by a writer.

    >>> has_writer(Connector("postgres")), has_writer(Connector("csv"))
    (True, False)
    """
    return connector.format == PYTHON_SINK or connector.format in writer_formats()


def writer_place(connector: Connector) -> str:
    """The place of the class that writes a sink; nothing if the user has not named one."""
    return (
        connector.options.get("writer", "") if connector.format == PYTHON_SINK else writer_formats()[connector.format]
    )
