"""Messages of Protobuf into rows, by a set of descriptors as protoc writes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from millrace.connectors.formats.decoded import Decoded
from millrace.connectors.formats.decoders import open_decoder
from millrace.errors import RequestError

COLUMNS = pa.schema(
    [
        ("word", pa.string()),
        ("count", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("kind", pa.string()),
        ("missing", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A file of descriptors, and the class of the message `shop.Word` in it."""
    times = FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3", dependency=[times.name])
    word = file.message_type.add(name="Word")
    kinds = word.enum_type.add(name="Kind")
    for number, name in enumerate(("NEW", "OLD")):
        kinds.value.add(name=name, number=number)
    single, many = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    for number, (name, kind, label, of) in enumerate(
        (
            ("word", FieldDescriptorProto.TYPE_STRING, single, ""),
            ("count", FieldDescriptorProto.TYPE_INT64, single, ""),
            ("at", FieldDescriptorProto.TYPE_MESSAGE, single, ".google.protobuf.Timestamp"),
            ("tags", FieldDescriptorProto.TYPE_STRING, many, ""),
            ("kind", FieldDescriptorProto.TYPE_ENUM, single, ".shop.Word.Kind"),
        ),
        start=1,
    ):
        word.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)
    path = tmp_path_factory.mktemp("protobuf") / "shop.desc"
    path.write_bytes(FileDescriptorSet(file=[times, file]).SerializeToString())
    pool = DescriptorPool()
    for each in (times, file):
        pool.AddSerializedFile(each.SerializeToString())
    return str(path), message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Word"))


def decode(path: str, values: list[bytes | None], **options: str) -> Decoded:
    given = {"format": "protobuf", "descriptor_file": path, "message": "shop.Word", **options}
    return open_decoder(COLUMNS, COLUMNS, given, 'stream "s"').decode(values)


def test_messages_are_read_by_their_descriptors(descriptors: tuple[str, Any]) -> None:
    path, word = descriptors
    full = word(word="a", count=-7, tags=["x", "y"], kind=1)
    full.at.FromDatetime(datetime(2026, 1, 1))
    found = decode(path, [full.SerializeToString(), word().SerializeToString(), None])
    first, empty, none = found.rows.to_pylist()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert first == {"word": "a", "count": -7, "at": at, "tags": ["x", "y"], "kind": "OLD", "missing": None}
    assert empty == {"word": "", "count": 0, "at": None, "tags": [], "kind": "NEW", "missing": None}
    assert set(none.values()) == {None}


@pytest.mark.parametrize("indexes", [b"\0", b"\x02\0", b"\x04\x02\x06"])
def test_the_prefix_of_a_registry_is_skipped(descriptors: tuple[str, Any], indexes: bytes) -> None:
    path, word = descriptors
    value = b"\0\0\0\0\x07" + indexes + word(word="a").SerializeToString()
    found = decode(path, [value, b"x"], schema_prefix="true")
    assert (found.rows.column("word").to_pylist(), found.kept.tolist()) == (["a"], [0])
    assert found.explain(1).reason == "names no schema of a registry"


def test_bytes_that_are_no_message_are_set_aside(descriptors: tuple[str, Any]) -> None:
    path, word = descriptors
    found = decode(path, [b"\xff\xff", word(count=1).SerializeToString()])
    assert (found.kept.tolist(), found.explain(0).reason) == ([1], "is not a record of its schema")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"message": ""}, "does not name its message"),
        ({"message": "shop.None"}, 'the message "shop.None" of stream "s" is not found'),
        ({"descriptor_file": "/no/file"}, "is not found in"),
        ({"schema_prefix": "maybe"}, 'does not take "maybe"'),
    ],
)
def test_wrong_options_of_protobuf_are_refused(
    descriptors: tuple[str, Any], options: dict[str, str], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        decode(descriptors[0], [], **options)
