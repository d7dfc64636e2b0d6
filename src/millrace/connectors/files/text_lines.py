"""The bytes of a text file in pieces of whole lines, and bytes that are not UTF-8 as text.

Rules:
- A line longer than `LONGEST` is no row: a stub takes its place, and the rest of it is passed over without being kept.
- The mark of UTF-8 at the beginning is left out; a file with that of UTF-16 is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 1 << 24
"""Bytes of a line, without its end."""
TOO_LONG = "is longer than 16 MiB"
NEWLINE = re.compile(rb"\n")
ANY_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""A carriage return at the very end may be half of a line end."""

_SHOWN = 200
_SLICE = 1 << 16
_UTF_8, _UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


def whole_lines(
    stream: Any, block_bytes: int, end: re.Pattern[bytes], stub: Callable[[bytes], bytes]
) -> Iterator[tuple[bytes, int]]:
    """The bytes of a stream in pieces of about a block that end where a line ends, but for the last one.

    With each piece comes how many bytes of the stream have been read up to its end. `stub` makes a line without its end
    of the beginning of one that is too long.
    """
    taken = 0

    def read() -> bytes:
        nonlocal taken
        data: bytes = stream.read(block_bytes)
        taken += len(data)
        return data

    rest, data = b"", _unmarked(read())
    while data:
        rest += data
        found = end.search(rest) if len(rest) > LONGEST else None
        if len(rest) > LONGEST and (found is None or found.start() > LONGEST):
            yield stub(rest[:_SHOWN]) + b"\n", taken
            rest = _after_line(read, end, rest) if found is None else rest[found.end() :]
        if last := _last_end(rest, end):
            lines, rest = rest[:last], rest[last:]
            yield lines, taken - len(rest)
        data = read()
    if rest:
        yield rest, taken


def _unmarked(data: bytes) -> bytes:
    """The first block without the mark of its encoding."""
    if data.startswith(_UTF_16):
        raise UnicodeError("it begins with the mark of UTF-16")
    return data.removeprefix(_UTF_8)


def _last_end(data: bytes, end: re.Pattern[bytes]) -> int:
    """Where the last whole line ends."""
    newline = data.rfind(b"\n")
    if newline < 0 and end is ANY_LINE_END:
        newline = data.rfind(b"\r", 0, max(len(data) - 1, 0))
    return newline + 1


def _after_line(read: Callable[[], bytes], end: re.Pattern[bytes], rest: bytes) -> bytes:
    """What follows the end of a line, of which this is the beginning; nothing at the end of the stream."""
    while data := read():
        # What ends the block may be half of a line end.
        data = rest[-1:] + data
        if found := end.search(data):
            return data[found.end() :]
        rest = data
    return b""


def count_lines(lines: bytes) -> int:
    """How many lines there are, however they end."""
    cells = np.frombuffer(lines, np.uint8)
    # Slice by slice, because a comparison of the whole would be as large as the lines.
    count = sum(int(np.count_nonzero(cells[at : at + _SLICE] == 0x0A)) for at in range(0, len(cells), _SLICE))
    return count + lines.count(b"\r") - lines.count(b"\r\n") if b"\r" in lines else count


# Bytes that are not UTF-8


def is_utf_8(data: bytes) -> bool:
    """True if all the bytes are text."""
    if data.isascii():
        return True
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)]
    )
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def widened(data: bytes) -> bytes:
    """Bytes as UTF-8, each as the character of its number; ASCII stays as it is."""
    return data.decode("latin-1").encode()


def narrowed(text: str) -> str:
    """Text that was widened as it was, with a mark for what is not UTF-8.

    >>> narrowed(widened(b"b\\xb7").decode()) == "b\\ufffd", narrowed(widened("bé".encode()).decode())
    (True, 'bé')
    """
    return text.encode("latin-1").decode("utf-8", "replace")


def narrowed_column(column: pa.Array) -> pa.Array:
    """A column of bytes that were widened as they were."""
    text = pc.fill_null(column.cast(pa.string()), "")
    ends = np.cumsum(pc.utf8_length(text).to_numpy(), dtype=np.int32)
    # The values stand one after the other: as one, they are the bytes of the column.
    whole = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text), "")[0].as_py()
    buffers = [None, pa.py_buffer(np.concatenate([[np.int32(0)], ends])), pa.py_buffer(whole.encode("latin-1"))]
    values = pa.Array.from_buffers(pa.binary(), len(text), buffers)
    return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.binary()))
