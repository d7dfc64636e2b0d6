"""A run over a stream that nobody has pushed rows into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import millrace as mr


@contextmanager
def pushed_run() -> Iterator[mr.Handle]:
    """Its handle; the stream is `s`, the query `all`."""
    network = mr.Network()
    stream = network.stream("s", "k STRING, ts TIMESTAMP", time="ts", source=mr.Pushed())
    network.query("all", stream)
    handle = network.run(on="local", background=True)
    try:
        yield handle
    finally:
        handle.stop()
