"""csv bytes cut into whole records; a quote that is never closed makes its own line malformed, and no other.

Rules:
- A record may run over several lines if it has the right number of fields and each quoted one ends at a delimiter or at
  the end of a line. Otherwise its first line alone is malformed, and reading goes on with the next line.
- A line that is too long is malformed too, whatever it holds.
- Such a line is replaced by a mark: one line with a field too many, which holds the old line. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from millrace.connectors.files.text_lines import ANY_LINE_END, whole_lines

_LINE_END = rb"(?:\r\n|[\r\n])"
_PENDING_BLOCKS = 8
LONG = "\x1a"
"""The character before the beginning of a line that was too long."""


@dataclass(frozen=True)
class Layout:
    """The number of fields of a record, their delimiter, and their quote."""

    delimiter: str
    quote: str
    fields: int

    def mark(self, line: bytes) -> bytes:
        """The mark for an unclosed line."""
        quote, text = self.quote.encode(), line.rstrip(b"\r\n")
        # Arrow reports the text of a record only if it is UTF-8.
        readable = text.decode("utf-8", "replace").encode()
        return self._start.encode() + readable.replace(quote, quote * 2) + quote + line[len(text) :]

    def long_mark(self, begin: bytes) -> bytes:
        """The mark for a line that is too long, of which this is the beginning."""
        return self.mark(LONG.encode() + begin)

    def marked(self, text: str) -> str | None:
        """The line that a mark stands for; None if the text is no mark."""
        text = text.rstrip("\r\n")
        if not text.startswith(self._start) or not text.endswith(self.quote):
            return None
        return text[len(self._start) : -1].replace(self.quote * 2, self.quote)

    def repair(self, data: bytes, pending_bytes: int) -> tuple[bytes, bytes]:
        """Whole records with unclosed lines marked, and up to `pending_bytes` of a record that may end further on."""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            found = self._pattern.match(data, at)
            assert found is not None
            if found["good"] is not None:
                parts.append(found[0])
            elif found["pending"] is not None and len(data) - at <= pending_bytes:
                break
            else:
                parts.append(self.mark(found[0]))
            at = found.end()
        return b"".join(parts), data[at:]

    def end_of_records(self, data: bytes) -> int | None:
        """Where the last whole record ends, if every quote stands at the border of its field; None otherwise."""
        cells = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(cells == ord(self.quote))
        opening, closing = quotes[0::2], quotes[1::2]
        # Data ends with a line: the byte before the first is a line end too, and there is one after every quote.
        if not (self._borders[cells[opening - 1]].all() and self._borders[cells[closing + 1]].all()):
            return None
        end = len(data)
        while end and np.searchsorted(quotes, end) % 2:
            end = _last_line_end(data, int(quotes[np.searchsorted(quotes, end) - 1]))
        return end

    @cached_property
    def _start(self) -> str:
        return self.delimiter * self.fields + self.quote

    @cached_property
    def _borders(self) -> Any:
        return np.isin(np.arange(256), [ord(self.delimiter), ord(self.quote), 0x0A, 0x0D])

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        """Some good lines and records; or one line that is neither, with `pending` if its record runs to the end."""
        quote, delimiter = (re.escape(each.encode()) for each in (self.quote, self.delimiter))
        bare = rb"(?!%b)[^%b\r\n]*+" % (quote, delimiter)
        begun = rb"%b[^%b]*+(?:%b[^%b]*+)*+" % (quote, quote, quote * 2, quote)
        on_line = begun.replace(rb"[^%b]" % quote, rb"[^%b\r\n]" % quote)
        lax = rb"(?:%b%b[^%b\r\n]*+|%b)" % (on_line, quote, delimiter, bare)
        strict = rb"(?:%b%b|%b)" % (begun, quote, bare)
        line = rb"%b(?:%b%b)*+%b" % (lax, delimiter, lax, _LINE_END)
        record = rb"%b(?:%b%b){%d}%b" % (strict, delimiter, strict, self.fields - 1, _LINE_END)
        pending = rb"(?P<pending>(?=(?:%b%b){0,%d}+%b\Z))?+" % (strict, delimiter, self.fields - 1, begun)
        return re.compile(rb"(?P<good>(?:%b|%b)++)|%b[^\r\n]*+%b" % (line, record, pending, _LINE_END))


def records(
    stream: Any, block_bytes: int, layout: Layout, cut: Callable[[bytes, int], bytes], *, ends: bool = True
) -> Iterator[int]:
    """Call `cut` with the lines of a stream, about a block at a time, after the lines that it returned before.

    Its second argument is how many bytes it may return: those of some blocks, and none at the end of the stream.
    Yields how many bytes of the stream have been cut into records. Unless the stream `ends`, a last record that is not
    whole is left.
    """
    rest, taken = b"", 0
    for lines, taken in whole_lines(stream, block_bytes, ANY_LINE_END, layout.long_mark):
        rest += lines
        if _last_line_end(lines, len(lines)) == len(lines):
            rest = cut(rest, _PENDING_BLOCKS * block_bytes)
            yield taken - len(rest)
    if rest and ends:
        cut(rest if rest.endswith((b"\r", b"\n")) else rest + b"\n", 0)
        yield taken


def _last_line_end(data: bytes, before: int) -> int:
    """Where the last whole line ends; a carriage return at the very end may be half of a line end."""
    newline = data.rfind(b"\n", 0, before)
    return (newline if newline >= 0 else data.rfind(b"\r", 0, max(before - 1, 0))) + 1
