"""Names made from content: equal parts of several queries have one name, and saved state finds its operator again.

Rules:
- Of a stream only that counts on which an answer depends: its name, its time contract, and the columns that the part
  itself reads. Where the rows come from, and columns that the part does not read, may change under a part with state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Scan


def content_name(label: str, content: object) -> str:
    """A label and enough of a hash of the content's text to tell the parts of any network apart.

    >>> content_name("filter", ("x", 1)) == content_name("filter", ("x", 1))
    True
    """
    return f"{label.replace(' ', '_')}#{hashlib.sha256(repr(content).encode()).hexdigest()[:12]}"


def meaning(node: Node) -> Node:
    """A tree with its streams reduced to what its answer depends on.

    For a tree without state no columns count: it passes on whatever columns the stream has.
    """
    remembers = not node.is_prefix
    wanted = node.column_names() if remembers else []

    def reduced(each: Node) -> Node:
        if not isinstance(each, Scan):
            return each.map_children(reduced)
        stream = each.stream
        read = set(stream_columns(node, wanted, stream.name)) if remembers else set()
        schema = pa.schema([field for field in stream.schema if field.name in read])
        return Scan(Stream(stream.name, schema, stream.time, Connector("")), each.outlet)

    return reduced(node)


def stream_columns(node: Node, wanted: Sequence[str], stream: str) -> Iterator[str]:
    """The columns of a stream that a tree reads to give the wanted ones."""
    if isinstance(node, Scan):
        yield from wanted if node.stream.name == stream else ()
    for each, read in zip(node.children(), node.reads(wanted), strict=True):
        yield from stream_columns(each, read, stream)
