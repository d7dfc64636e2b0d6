"""Texts and bytes in other spellings, digests, and addresses; most computed once for each distinct value."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from typing import Any
from urllib.parse import quote_plus, unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct, with_constants
from millrace.kernel.columns.functions.number_functions import digits_of
from millrace.kernel.columns.nested.nested_columns import over_columns

_TEXT, _BYTES, _LONG = pa.string(), pa.binary(), pa.int64()
_PAIRS = np.array([list(f"{byte:02X}".encode()) for byte in range(256)], np.uint8)
"""The two hexadecimal digits of each byte."""
_SIGNS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
"""The signs of base 64."""
_URL_SIGNS = np.array(
    [list(quote_plus(bytes([byte]), safe="*").replace("~", "%7E").encode().ljust(3, b"\0")) for byte in range(256)],
    np.uint8,
)
"""How each byte stands in an address, filled up with zeros."""
_URL_SIZES = np.count_nonzero(_URL_SIGNS, axis=1)
_CHARSETS = {"US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32"}
_URL = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_AUTHORITY = re.compile(r"(?:(.*)@)?([^@:\[\]]*|\[[^\]]*\])(?::\d*)?")


def _sha2(given: bytes, bits: int) -> str | None:
    name = f"sha{bits or 256}"
    return hashlib.new(name, given).hexdigest() if name in ("sha224", "sha256", "sha384", "sha512") else None


def _contents(value: pa.Array) -> tuple[Any, Any]:
    """Where each value begins among the bytes of all, and where the last one ends; and these bytes."""
    plain = pc.cast(value, pa.large_binary())
    _, offsets, data = plain.buffers()
    places = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    return places - places[0], np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]


def _texts(value: pa.Array, offsets: Any, signs: Any) -> pa.Array:
    """Texts of ASCII signs, null where the value is."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(signs))]
    return pc.if_else(value.is_valid(), pa.Array.from_buffers(_TEXT, len(value), buffers), pa.scalar(None, _TEXT))


@over_columns
def _base64(value: pa.Array) -> pa.Array:
    """Bytes in signs of six bits, three bytes in four signs."""
    places, data = _contents(value)
    lengths = np.diff(places)
    ends = np.concatenate([[0], np.cumsum(-(-lengths // 3))])
    # Each value begins a group of its own; what is missing in its last one is zero, and shown as "=".
    given = np.zeros((ends[-1], 3), np.uint32)
    given.reshape(-1)[np.arange(len(data)) + np.repeat(3 * ends[:-1] - places[:-1], lengths)] = data
    bits = given @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    signs = _SIGNS[(bits[:, None] >> np.array([18, 12, 6, 0], np.uint32)) & np.uint32(63)]
    signs[ends[1:][lengths % 3 > 0] - 1, 3] = ord("=")
    signs[ends[1:][lengths % 3 == 1] - 1, 2] = ord("=")
    return _texts(value, 4 * ends, signs)


def _unbase64(text: str) -> bytes:
    """Bytes of base 64, with or without the signs that fill it up; other signs are passed over, as Java does it."""
    plain = re.sub(r"[^A-Za-z0-9+/]", "", text.partition("=")[0])
    return base64.b64decode(plain[: len(plain) - (len(plain) % 4 == 1)] + "=" * (-len(plain) % 4))


def _hex(value: Value) -> Value:
    """Whole numbers without leading zeros, texts and bytes with all of them."""
    if pa.types.is_integer(value.type):
        return digits_of(4)(value)
    return _hex_of_bytes(value)


@over_columns
def _hex_of_bytes(value: pa.Array) -> pa.Array:
    places, data = _contents(value)
    return _texts(value, 2 * places, _PAIRS[data])


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}") if text.isalnum() or not text else None
    except ValueError:
        return None


def _charset(name: str) -> str:
    if name.upper() not in _CHARSETS:
        raise pa.ArrowInvalid(f'no charset is "{name}": they are {", ".join(sorted(_CHARSETS))}')
    return name


def _encoded(text: str, charset: str) -> bytes:
    name = _charset(charset).upper()
    if name in ("UTF-16", "UTF-32"):
        mark = b"\xfe\xff" if name == "UTF-16" and text else b""
        return mark + text.encode(f"{name}BE")
    return text.encode(name, "replace")


def _decoded(given: bytes, charset: str) -> str:
    name = _charset(charset).upper()
    if name == "UTF-16" and given[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        name = "UTF-16BE"
    if name == "UTF-32" and given[:4] not in (b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00"):
        name = "UTF-32BE"
    return given.decode(name, "replace")


def _as_they_are(given: pa.DataType, kind: pa.DataType) -> Kernel:
    """The bytes that Arrow's texts are made of, or the other way round; None if they are no UTF-8, or not asked for."""

    def compute(value: Value, charset: str) -> Value:
        if value.type != given or _charset(charset).upper() != "UTF-8":
            return None
        try:
            return pc.cast(value, kind)
        except pa.ArrowInvalid:
            return None

    return compute


@over_columns
def _url_encoded(value: pa.Array) -> pa.Array:
    places, data = _contents(value)
    sizes = np.concatenate([[0], np.cumsum(_URL_SIZES[data])])
    signs = _URL_SIGNS[data]
    return _texts(value, sizes[places], signs[signs != 0])


def _url_decoded(text: str) -> str | None:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise pa.ArrowInvalid(f"'{text}' is not the code of a text in an address")
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _url_part(url: str, part: str, key: str | None = None) -> str | None:
    found = _URL.fullmatch(url)
    if found is None or re.search(r"[\s<>\"{}|\\^`]|%(?![0-9A-Fa-f]{2})", url):
        return None
    scheme, authority, path, query, fragment = found.groups()
    if scheme and authority is None and not path.startswith("/"):
        return scheme if part == "PROTOCOL" and key is None else None
    names = _AUTHORITY.fullmatch(authority or "")
    file = path if query is None else f"{path}?{query}"
    if part == "QUERY" and key is not None:
        value = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", query or "")
        return value[1] if value else None
    return (
        {
            "HOST": (names[2] or None) if names else None,
            "PATH": path,
            "QUERY": query,
            "REF": fragment,
            "PROTOCOL": scheme,
            "FILE": file,
            "AUTHORITY": authority or None,
            "USERINFO": names[1] if names else None,
        }.get(part)
        if key is None
        else None
    )


ENCODING_FUNCTIONS: dict[str, Kernel] = {
    "md5": by_distinct(_TEXT)(lambda given: hashlib.md5(given, usedforsecurity=False).hexdigest()),
    "sha1": by_distinct(_TEXT)(lambda given: hashlib.sha1(given, usedforsecurity=False).hexdigest()),
    "sha2": by_distinct(_TEXT)(_sha2),
    "crc32": by_distinct(_LONG)(zlib.crc32),
    "base64": _base64,
    "unbase64": by_distinct(_BYTES)(_unbase64),
    "hex": _hex,
    "unhex": by_distinct(_BYTES)(_unhex),
    "encode": with_constants(_as_they_are(pa.string(), _BYTES), by_distinct(_BYTES)(_encoded)),
    "decode": with_constants(_as_they_are(_BYTES, _TEXT), by_distinct(_TEXT)(_decoded)),
    "url_encode": _url_encoded,
    "url_decode": by_distinct(_TEXT)(_url_decoded),
    "parse_url": by_distinct(_TEXT)(_url_part),
}
