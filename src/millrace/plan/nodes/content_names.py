"""Names made from content: equal parts of several queries have one name, and saved state finds its operator again.

Rules:
- Of a stream only what answers depend on counts: its name, its time contract without tunings, and the columns that the
  part itself reads. Where the rows come from, how the bound rises, and columns that the part does not read may change
  under a part with state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from millrace.kernel.progress.time_contract import QUARANTINED
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Scan
from millrace.plan.nodes.table_nodes import TableJoin


def content_name(label: str, content: object) -> str:
    """A label and enough of a hash of the content's text to tell the parts of any network apart.

    >>> content_name("filter", ("x", 1)) == content_name("filter", ("x", 1))
    True
    """
    return f"{label.replace(' ', '_')}#{hashlib.sha256(repr(content).encode()).hexdigest()[:12]}"


def meaning(node: Node) -> Node:
    """A tree with its streams reduced to what its answer depends on.

    For a tree without state no columns count: it passes all columns of the stream on.
    """
    # For all streams at once: a union may have many.
    read = {} if node.is_prefix else columns_by_stream([node])

    def reduced(each: Node) -> Node:
        if isinstance(each, TableJoin):
            each = each.reduced(typed=not node.is_prefix)
        if not isinstance(each, Scan):
            return each.map_children(reduced)
        stream = each.stream
        schema = pa.schema([field for field in stream.schema if field.name in read.get(stream.name, ())])
        # How columns are computed cannot change under a name: see evolution.py.
        time = replace(stream.time.untuned(), computed=())
        return Scan(Stream(stream.name, schema, time, Connector("")), each.outlet)

    return reduced(node)


def columns_by_stream(roots: Iterable[Node]) -> dict[str, set[str]]:
    """The columns of each stream that some trees read."""
    found: dict[str, set[str]] = {}
    waiting: list[tuple[Node, Sequence[str]]] = [(root, root.column_names()) for root in roots]
    while waiting:
        node, wanted = waiting.pop()
        if isinstance(node, Scan):
            # What is wrong with a row may be in any column.
            read = node.stream.schema.names if node.outlet == QUARANTINED else wanted
            found.setdefault(node.stream.name, set()).update(read)
        waiting += zip(node.children(), node.reads(wanted), strict=True)
    return found
