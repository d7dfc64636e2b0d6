"""Which streams are read by a source of the connector contract, and where its class stands.

A package has a source if it declares an entry point of the group `millrace.sources`: the name is the format that `FROM`
names, the value the place of the class. A format of Millrace's own cannot be taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

GROUP = "millrace.sources"
"""The group of entry points by which packages declare sources."""
PYTHON = "python"
"""The format of a source that a stream names itself, with the option `source`."""
_TAKEN = ("csv", "json", "parquet", "generate", "nexmark", "iterable", "dataframe", PYTHON)
_SHIPPED = MappingProxyType({"kafka": "millrace.connectors.kafka.kafka_source:KafkaSource"})


@cache
def source_formats() -> MappingProxyType[str, str]:
    """The places of sources by the format that names each.

    >>> source_formats()["kafka"].rpartition(":")[2]
    'KafkaSource'
    """
    declared = {each.name: each.value for each in entry_points(group=GROUP) if each.name not in _TAKEN}
    return MappingProxyType({**declared, **_SHIPPED})


def has_source(format: str, options: Mapping[str, str]) -> bool:
    """True if a stream of a format with these options is read by a source.

    >>> has_source("kafka", {}), has_source("python", {"source": "shop.orders:Orders"}), has_source("csv", {})
    (True, True, False)
    """
    return format in source_formats() or (format == PYTHON and "source" in options)


def source_place(format: str, options: Mapping[str, str]) -> str:
    """The place of the class that reads a stream."""
    return options["source"] if format == PYTHON else source_formats()[format]
