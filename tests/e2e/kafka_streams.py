"""Streams and messages for tests with a broker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import millrace as mr
from tests.kafka_broker import Broker

DAY = datetime(2026, 1, 1)


def message(partition: int, second: float, /, **values: Any) -> dict[str, Any]:
    """A message with a time, for `Broker.send`."""
    at = (DAY + timedelta(seconds=second)).isoformat()
    return {"partition": partition, "value": json.dumps({"ts": at, **values})}


def stream_text(
    broker: Broker,
    topic: str,
    *,
    columns: str = "n BIGINT",
    time: str = "ORDERED",
    options: Mapping[str, str] | None = None,
) -> str:
    """A stream of a topic."""
    given = {"bootstrap_servers": broker.bootstrap_servers, "topic": topic, **(options or {})}
    written = ", ".join(f"{name} '{value}'" for name, value in given.items() if value)
    return f"CREATE STREAM s ({columns}, ts TIMESTAMP) TIMESTAMP BY ts {time} FROM kafka OPTIONS ({written});"


def rows(text: str, query: str = "SELECT * FROM s;", *, checkpoint: Path | None = None, until: str = "end") -> pa.Table:
    """What a query gives on the local host of all that the topic holds now."""
    net = mr.Network().sql(text).sql(f"CREATE QUERY q AS {query}")
    return net.run(on="local", until=until, checkpoint=checkpoint).results("q")


def column(table: pa.Table, name: str = "n") -> list[Any]:
    return table.column(name).to_pylist()


def sent(broker: Broker, topic: str, *messages: Mapping[str, Any], partitions: int = 2) -> str:
    """A new topic with messages; its name."""
    broker.create(topic, partitions)
    broker.send(topic, messages)
    return topic


def in_order(table: pa.Table) -> Sequence[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)
