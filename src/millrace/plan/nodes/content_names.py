"""Names made from content: equal parts of several queries have one name, and saved state finds its operator again.

Rules:
- Of a stream only that counts on which an answer depends: its name, its time contract, and the columns that the part
  itself reads. Where the rows come from, and columns that nobody here reads, may change under a part with state.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

from millrace.plan.nodes.columns_read import columns_of, names_of
from millrace.plan.nodes.network import Connector, Node, Scan, Stream, with_inputs
from millrace.plan.nodes.prefix import is_prefix


def content_name(label: str, content: object) -> str:
    """A label and enough of a hash of the content's text to tell the parts of any network apart.

    >>> content_name("filter", ("x", 1)) == content_name("filter", ("x", 1))
    True
    """
    return f"{label.replace(' ', '_')}#{hashlib.sha256(repr(content).encode()).hexdigest()[:12]}"


def meaning(node: Node) -> Node:
    """A tree with its streams reduced to what its answer depends on.

    What has no state shows a stream's columns as they come, so they do not count there.
    """
    remembers = not is_prefix(node)
    wanted = names_of(node) if remembers else []

    def reduced(each: Node) -> Node:
        if not isinstance(each, Scan):
            return with_inputs(each, reduced)
        stream = each.stream
        read = set(columns_of(node, wanted, stream.name)) if remembers else set()
        schema = pa.schema([field for field in stream.schema if field.name in read])
        return Scan(Stream(stream.name, schema, stream.time, Connector("")), each.outlet)

    return reduced(node)
