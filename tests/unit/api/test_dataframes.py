from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import millrace as mr
from millrace.api.dataframes import frame_columns, is_frame
from millrace.errors import RequestError


class DataFrame:
    """A stand-in for Spark's, so that Spark need not be loaded."""

    __module__ = "pyspark.sql.dataframe"

    def __init__(self, *columns: tuple[str, str], streaming: bool = True) -> None:
        self.isStreaming = streaming
        self.schema = SimpleNamespace(fields=[_field(name, kind) for name, kind in columns])


def _field(name: str, kind: str) -> Any:
    return SimpleNamespace(name=name, dataType=SimpleNamespace(typeName=lambda: kind, simpleString=lambda: kind))


BIDS = DataFrame(("k", "string"), ("a price", "long"), ("timestamp", "timestamp_ntz"))


def test_a_data_frame_gives_a_stream_its_columns() -> None:
    assert is_frame(BIDS)
    assert frame_columns("bids", BIDS) == "`k` STRING, `a price` BIGINT, `timestamp` TIMESTAMP"
    net = mr.Network()
    net.query("q", net.stream("bids", BIDS, time="timestamp").select("k"))
    (stream,) = net.bound().streams()
    assert (stream.schema.names, stream.connector.format) == (["k", "a price", "timestamp"], "dataframe")


def test_declared_columns_can_be_read_from_a_data_frame() -> None:
    net = mr.Network()
    net.query("q", net.stream("bids", "k STRING, `timestamp` TIMESTAMP", time="timestamp", source=BIDS))
    assert net.bound().streams()[0].schema.names == ["k", "timestamp"]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (DataFrame(("ts", "timestamp"), streaming=False), {}, "not streaming(.|\n)*readStream"),
        (DataFrame(("ts", "timestamp"), ("m", "map<string,int>")), {}, '"m" of stream "s" is map<string,int>'),
        (DataFrame(("ts", "timestamp")), {"path": "x"}, "takes no options beside a DataFrame"),
        (DataFrame(("ts", "string")), {}, "not TIMESTAMP"),
    ],
)
def test_what_cannot_be_a_stream_is_refused(frame: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mr.MillraceError, match=message):
        mr.Network().stream("s", frame, time="ts", **options)


def test_a_data_frame_is_for_spark_alone() -> None:
    net = mr.Network()
    net.query("q", net.stream("bids", BIDS, time="timestamp"))
    for host in ("local", "virtual"):
        with pytest.raises(RequestError, match="Run it on Spark"):
            net.run(on=host, until="end")
