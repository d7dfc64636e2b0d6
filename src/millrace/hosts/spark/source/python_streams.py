"""Streams that Python gives, on Spark: read from files that the driver writes, or from a frame of Spark's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from millrace.connectors.native import is_native
from millrace.connectors.push_pull import Asked
from millrace.hosts.spark.source.feeds import write_feed
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.polls import Polls
from millrace.plan.nodes.endpoints import Connector
from millrace.plan.nodes.query_network import Network
from millrace.plan.physical.stages import Physical, physical


class PythonStreams:
    """What a run is given for its streams, by name, and the files that it has made of it."""

    def __init__(self, feeds: Mapping[str, Any], folder: Path) -> None:
        self._feeds = feeds
        """The very mapping that was given: streams may be declared, and fed, while the network runs."""
        self._folder = folder
        self._files: dict[str, Connector] = {}
        self.polls = Polls()

    def frame(self, stream: str) -> Any:
        """The frame that was given for a stream that Spark reads; None if its connector says all."""
        return self._feeds.get(stream)

    def network(self, plan: Physical) -> Network:
        """The plan's network with fed streams read from files; refuses streams that cannot be found."""
        for stream in plan.network.streams():
            name = stream.name
            if name in self._feeds and name not in self._files and not is_native(stream.connector):
                feed = self._feeds[name]
                fed_by = self.polls.add if isinstance(feed, Asked) else write_feed
                self._files[name] = fed_by(feed, stream, plan.columns_read(name), self._folder / name)
        fed = [stream for stream in plan.network.streams() if stream.name in self._files]
        network = plan.network.with_streams(
            {each.name: replace(each, connector=self._files[each.name]) for each in fed}
        )
        readable = physical(network)
        for stream in network.streams():
            if not is_native(stream.connector):
                StreamLowLevel(readable, stream.name, (0,)).files()
        return network
