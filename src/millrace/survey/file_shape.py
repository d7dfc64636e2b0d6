"""What kind of file a path leads to: its format, and for csv the delimiter and the header, from its first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.files.input_files import list_files, open_bytes, readable
from millrace.errors import RequestError, listed
from millrace.plan.nodes.endpoints import Connector
from millrace.survey.column_kinds import text_kind

_HEAD_BYTES = 1 << 16
_HEAD_ROWS = 200
_DELIMITERS = (";", "\t", "|", ",")
"""A comma last: with another delimiter it may be part of numbers and of text."""
_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab", ".psv", ".dat"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}
_COMPRESSED = (".gz", ".bz2", ".zip")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Marks at the beginning of a file."""
_NAME = re.compile(r"[A-Za-z_][\w .:/()%-]*")


@dataclass(frozen=True)
class FileShape:
    """How a file or a folder is read: its format, the options that it needs, and the columns of csv by their names.

    `sure` says of each finding how sure it is: sure, likely or a guess.
    """

    path: str
    files: Sequence[str]
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    sure: Mapping[str, str] = field(default_factory=dict)

    def connector(self, **more: str) -> Connector:
        """The connector that reads it."""
        return Connector(self.format, {"path": self.path, **self.options, **more})


def file_shape(path: str) -> FileShape:
    """What kind of file or folder this is."""
    if "://" in path:
        raise RequestError(
            f'"{path}" is no file, no folder and no topic of Kafka',
            hint="Download it first, or name a topic: kafka://host:9092/topic.",
        )
    files = list_files(Connector("csv", {"path": path}), Path(path).stem)
    if not files:
        raise RequestError(f'the folder "{path}" holds no files', hint="Put a data file there, or name another one.")
    format, sure = _format(files)
    shape = FileShape(path, files, format, sure={"format": sure})
    return _csv_shape(shape) if format == "csv" else shape


def _format(files: Sequence[str]) -> tuple[str, str]:
    """The format by the names of the files, or by the first bytes of the first one."""
    formats = {_ENDINGS.get(_ending(Path(file))) for file in files}
    known = next(iter(formats)) if len(formats) == 1 else None
    if len(formats - {None}) > 1:
        raise RequestError(
            f"the files have different formats: {listed(sorted(str(each) for each in formats))}",
            hint="Name files of one format: 'folder/*.csv'.",
        )
    head = _head(Path(files[0])) if known != "parquet" else b"PAR1"
    found = "parquet" if head[:4] == b"PAR1" else "json" if head.lstrip()[:1] == b"{" else "csv"
    if head.lstrip()[:1] == b"[" and known == "json":
        raise RequestError(
            f'"{files[0]}" is one JSON array, not one object per line',
            hint="Write an object per line first: jq -c '.[]' file.json > file.jsonl",
        )
    assert found in FORMATS
    return (known or found), ("sure" if known == found else "likely")


def _ending(file: Path) -> str:
    return Path(file.stem).suffix.lower() if file.suffix in _COMPRESSED else file.suffix.lower()


def _head(file: Path) -> bytes:
    """The first bytes of a file, without the mark of UTF-8."""
    with readable(file, "text"), open_bytes(file) as stream:
        data: bytes = stream.read(_HEAD_BYTES)
    return data.removeprefix(b"\xef\xbb\xbf")


# The delimiter and the header of csv


def _csv_shape(shape: FileShape) -> FileShape:
    head = next((text for text in (_head(Path(file)) for file in shape.files) if text.strip()), b"")
    if not head:
        raise RequestError(f'"{shape.path}" is empty', hint="Give a file that has at least a line of column names.")
    whole = len(head) < _HEAD_BYTES - 3
    head = head if whole else head[: head.rfind(b"\n") + 1]
    lines = _text(shape.path, head)
    delimiter, sure_delimiter = delimiter_of(lines)
    rows = csv_rows(lines, delimiter)
    _check_start(shape.path, rows)
    header, sure_header = _has_header(rows)
    width = width_of(rows)
    names = rows[0] if header else [f"column_{number}" for number in range(1, width + 1)]
    options = {} if delimiter == "," else {"delimiter": "\\t" if delimiter == "\t" else delimiter}
    options |= {} if header else {"header": "false"}
    sure = {**shape.sure, "delimiter": sure_delimiter, "header": sure_header}
    return FileShape(shape.path, shape.files, "csv", options, names, sure)


def _text(path: str, head: bytes) -> str:
    """The first lines as text; refuses what is written in another encoding, but not one line that is torn."""
    if head.startswith(_UTF_16):
        raise RequestError(
            f'"{path}" is UTF-16, not UTF-8',
            hint=f"Write it as UTF-8 first: iconv -f UTF-16 -t UTF-8 {path} > other.csv",
        )
    if b"\0" in head:
        raise RequestError(
            f'"{path}" is no text: it holds the byte 0', hint="Give a file of csv, json or parquet, also compressed."
        )
    wrong = [line for line in head.splitlines() if not _is_utf_8(line)]
    if len(wrong) > 1 and len(wrong) * 20 > head.count(b"\n"):
        raise RequestError(
            f'"{path}" is not UTF-8: {len(wrong):,} of its first {head.count(10):,} lines hold other bytes',
            hint=f"Write it as UTF-8 first, if it is from Windows: iconv -f WINDOWS-1252 -t UTF-8 {path} > other.csv",
        )
    return head.decode("utf-8", "replace")


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check_start(path: str, rows: Sequence[Sequence[str]]) -> None:
    """Refuse lines before the header: a run could not leave them out."""
    width = width_of(rows)
    before = 0
    while before < len(rows) and _is_remark(rows[before], width):
        before += 1
    if before:
        raise RequestError(
            f'"{path}" begins with {before} {"line" if before == 1 else "lines"} that {"is" if before == 1 else "are"} '
            "neither names of columns nor rows",
            hint=f"Leave them out first: tail -n +{before + 1} {path} > other.csv",
        )


def _is_remark(row: Sequence[str], width: int) -> bool:
    """True for a comment that is not as wide as the rows, and for the line by which Excel names the delimiter."""
    return (row[0].lstrip().startswith("#") and len(row) != width) or row[0].startswith("sep=")


def csv_rows(lines: str, delimiter: str) -> list[list[str]]:
    """The first rows of csv that are not empty."""
    return [row for row in csv.reader(lines.splitlines(keepends=True), delimiter=delimiter) if row][:_HEAD_ROWS]


def width_of(rows: Sequence[Sequence[str]]) -> int:
    """How many fields most rows have."""
    return Counter(map(len, rows)).most_common(1)[0][0]


def delimiter_of(lines: str) -> tuple[str, str]:
    """The character by which most rows have the same number of fields, more than one; and how sure that is."""
    fits = {}
    for each in _DELIMITERS:
        counts = Counter(map(len, csv_rows(lines, each)))
        width, count = counts.most_common(1)[0]
        if width > 1:
            fits[each] = count / counts.total()
    if not fits:
        return ",", "sure" if "\n" in lines.strip() else "a guess"
    best = max(fits, key=lambda each: fits[each])
    return best, "sure" if fits[best] == 1.0 else "likely" if fits[best] > 0.9 else "a guess"


def _has_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """True if the first row names the columns: it does not fit the types of what stands below it."""
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    votes = 0
    for place, cell in enumerate(first):
        below = pa.array([row[place] or None for row in rest], pa.string())
        if text_kind(below) in ("text", "nothing"):
            continue
        votes += 1 if cell and text_kind(pa.array([cell])) == "text" else -1 if cell else 0
    if votes:
        return votes > 0, "sure" if abs(votes) > 1 or len(first) < 3 else "likely"
    named = len(set(first)) == len(first) and all(_NAME.fullmatch(cell) for cell in first if cell)
    again = any(cell in {row[place] for row in rest} for place, cell in enumerate(first) if cell)
    return named and not again, "likely" if named and not again else "a guess"
