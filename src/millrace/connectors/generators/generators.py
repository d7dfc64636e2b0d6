"""The connectors whose rows are made instead of read: `generate` and `nexmark`.

A generated stream comes in slices, each a function of its options and the slice's number, so that slices can be made
side by side and made again after a restart.
"""

from __future__ import annotations

import pyarrow as pa

from millrace.connectors.generators import arrivals as generate
from millrace.connectors.generators import nexmark
from millrace.plan.nodes.endpoints import Connector, Stream

GENERATED = ("generate", "nexmark")
_MAKERS = {"generate": generate, "nexmark": nexmark}


def is_generated(connector: Connector) -> bool:
    """Whether a connector makes its rows.

    >>> is_generated(Connector("nexmark")), is_generated(Connector("csv"))
    (True, False)
    """
    return connector.format in GENERATED


def slices_of(stream: Stream) -> int:
    """How many slices a generated stream has; refuses wrong options."""
    return _MAKERS[stream.connector.format].recipe(stream).slices


def make_slice(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of a slice, in order of arrival, with their arrival in `__arrived`."""
    return _MAKERS[stream.connector.format].generate(stream, schema, number)
