"""Messages of Protobuf into rows, by a set of descriptors as protoc writes it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
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


# A registry


def file_of(name: str, *fields: str, imports: tuple[str, ...] = (), nested: bool = False) -> FileDescriptorProto:
    """A schema with the messages "Other" and `name`, or with `name` in "Other"; a field with a dot is of that type."""
    file = FileDescriptorProto(name="default", package="shop", syntax="proto3", dependency=imports)
    other = file.message_type.add(name="Other")
    message = (other.nested_type if nested else file.message_type).add(name=name)
    for number, each in enumerate(fields, start=1):
        field, _, of = each.partition(" ")
        kind = FieldDescriptorProto.TYPE_MESSAGE if of else FieldDescriptorProto.TYPE_STRING
        message.field.add(name=field, number=number, type=kind, label=1, type_name=of or None)
    return file


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """The address of a registry, and its answers by path, to which a test adds."""
    answers: dict[str, dict[str, Any]] = {}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = answers.get(self.path)
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(known).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()


def answer(file: FileDescriptorProto, **more: Any) -> dict[str, Any]:
    return {"schemaType": "PROTOBUF", "schema": base64.b64encode(file.SerializeToString()).decode(), **more}


def text(number: int, value: str) -> bytes:
    """A field of text as Protobuf writes it."""
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def test_each_message_is_read_by_the_schema_and_the_place_that_it_names(registry: Any) -> None:
    address, answers = registry
    answers["/schemas/ids/7?format=serialized"] = answer(file_of("Word", "word"))
    columns = pa.schema([("word", pa.string()), ("more", pa.string())])
    options = {"format": "protobuf", "schema_registry": address}
    decoder = open_decoder(columns, columns, options, 'stream "s"')
    old = b"\0\0\0\0\x07" + b"\x02\x02" + text(1, "a")  # one index, 1: the second message
    new = b"\0\0\0\0\x08" + b"\x04\x00\x00" + text(1, "b") + text(2, "c")  # two, 0 and 0: nested
    found = decoder.decode([old, new, b"{}", b"\0\0\0\0\x07\x02\x0a", old + b"\xff"])
    assert (found.rows.to_pylist(), found.kept.tolist()) == ([{"word": "a", "more": None}], [0])
    assert found.explain(1).reason == "names schema 8, which the registry does not have"
    assert found.explain(2).reason == "names no schema of a registry"
    assert found.explain(3).reason == "names a message that schema 7 does not have"
    assert found.explain(4).reason == "is not a record of its schema"
    # A new version, while the stream is read.
    answers["/schemas/ids/8?format=serialized"] = answer(file_of("Word", "word", "more", nested=True))
    assert decoder.decode([new, old]).rows.to_pylist() == [{"word": "b", "more": "c"}, {"word": "a", "more": None}]


def test_a_schema_may_import_others_of_the_registry_and_of_protobuf(registry: Any) -> None:
    address, answers = registry
    part = file_of("Part", "word", "at .google.protobuf.Timestamp", imports=("google/protobuf/timestamp.proto",))
    whole = FileDescriptorProto(name="default", package="shop", syntax="proto3", dependency=["part.proto"])
    field = whole.message_type.add(name="Whole").field.add(name="part", number=1, type=11, label=1)
    field.type_name = ".shop.Part"
    references = [{"name": "part.proto", "subject": "part", "version": 3}]
    answers["/schemas/ids/9?format=serialized"] = answer(whole, references=references)
    answers["/subjects/part/versions/3?format=serialized"] = answer(part)
    columns = pa.schema([("part", pa.struct([("word", pa.string()), ("at", pa.timestamp("us", "UTC"))]))])
    inner = text(1, "a") + b"\x12\x02\x08\x05"
    value = b"\0\0\0\0\x09\0" + bytes([0x0A, len(inner)]) + inner
    options = {"format": "protobuf", "schema_registry": address}
    found = open_decoder(columns, columns, options, 'stream "s"').decode([value])
    assert found.rows.to_pylist() == [{"part": {"word": "a", "at": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)}}]


def test_a_registry_and_a_file_of_descriptors_are_refused_together() -> None:
    with pytest.raises(RequestError, match='has a schema registry and the option "descriptor_file"'):
        decode("shop.desc", [], schema_registry="http://127.0.0.1:1")
