"""The state of a bucket in Spark's state store: segments under names that are never used twice, and one manifest.

Rules:
- The digest of a segment is the last half of its name; the manifest begins with its own, which is also that of its
  bucket's number. What is damaged is refused before it is used.
- The manifest is written last and whole. It names the valid segments, so that no listing is ever needed.
- Calls and bytes are counted: each call costs a round trip to Java, and each byte a copy. A segment that this machine
  has as a file is read from there.
"""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Any
from zlib import crc32

import pyarrow as pa

from millrace.hosts.checkpoint.digests import damaged, sealed, unsealed
from millrace.hosts.spark.exchange.rows import pack, unpack
from millrace.hosts.spark.stage.segment_files import SegmentFiles

_MANIFEST = ("", 0)
_DIGEST = 0xFFFFFFFF


class BucketState:
    """The state of one bucket in one level."""

    def __init__(self, state: Any, files: SegmentFiles, bucket: int, level: int) -> None:
        self._state = state
        self._bucket = str(bucket)
        self._name = f"bucket {bucket} of level {level}"
        self._files = files
        self.counts: Counter[str] = Counter()

    def manifest(self) -> dict[str, Any] | None:
        """What the last micro-batch wrote; None for a new bucket."""
        stored = self._get(_MANIFEST)
        if stored is None:
            return None
        manifest = unsealed(stored, self._bucket)
        if manifest is None:
            raise damaged(f"the manifest in the state of {self._name}")
        return manifest

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Say which segments are valid from now on."""
        self._put(_MANIFEST, sealed(manifest, self._bucket))

    def segment(self, node: str, place: int) -> pa.Table:
        """A segment of an operator."""
        found = self._files.read(node, place)
        if found is not None:
            return found
        stored = self._get((node, place))
        if stored is None or crc32(stored) != place & _DIGEST:
            raise damaged(f'a segment of operator "{node}" in the state of {self._name}')
        table = unpack(stored)
        self._files.write(node, place, table)
        return table

    def add(self, node: str, table: pa.Table) -> int:
        """Write a segment; its place."""
        blob = pack(table)
        place = secrets.randbits(31) << 32 | crc32(blob)
        self._put((node, place), blob)
        self._files.write(node, place, table)
        return place

    def remove(self, node: str, place: int) -> None:
        """Drop a segment."""
        self._state.removeKey((node, place))
        self.counts["writes"] += 1
        self._files.remove(node, place)

    def _get(self, key: tuple[str, int]) -> bytes | None:
        stored = self._state.getValue(key)
        self.counts["reads"] += 1
        if stored is None:
            return None
        self.counts["bytes_read"] += len(stored[0])
        return bytes(stored[0])

    def _put(self, key: tuple[str, int], blob: bytes) -> None:
        self._state.updateValue(key, (blob,))
        self.counts["writes"] += 1
        self.counts["bytes_written"] += len(blob)
