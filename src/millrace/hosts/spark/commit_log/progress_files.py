"""How far the partitions and groups of streams have come on Spark, as files beside the commit log.

Rules:
- Their progress is kept in *runs*, files that never change, with their digest in the name; a later run overrides an
  earlier one. To these come the
  texts of the partitions that have changed since (`partitions`). Tasks, buckets and the commit record name runs, so
  that a micro-batch costs what has changed in it.
- The sink makes a run of what has changed, merged with runs that are not much larger. A record also names the runs
  before (`from`), on which the state of its buckets is based until they read newer ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from millrace.hosts.checkpoint.digests import damaged_file, digest, missing
from millrace.hosts.checkpoint.durable_files import make_folder, replace_file
from millrace.hosts.checkpoint.file_system import files
from millrace.kernel.progress.ingress import Ingress, Progress
from millrace.kernel.progress.partition_progress import newest

Order = dict[str, Any]
"""The state of a stream's order; only orders by partitions and groups have one."""

_MUCH = 2
"""A run that is more than this many times larger than what is added is not merged."""


class ProgressFiles:
    """The runs of a network, in the folder of its commit log."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder) / "progress"

    def whole(self, progress: Progress) -> dict[str, Any]:
        """The progress of a stream with what is in files, as `Ingress` takes it."""
        order = progress["order"]
        if "partitions" not in order:
            return dict(progress)
        texts = [*map(self._read, order.get("runs", ())), *order["partitions"]]
        return {**progress, "order": {**order, "partitions": texts}}

    def save_changed(self, sources: Mapping[str, Progress]) -> dict[str, Any]:
        """The progress of streams, with what has changed written to files."""
        return {name: self._save_changed(known) for name, known in sources.items()}

    def prune(self, sources: Iterable[Progress]) -> None:
        """Remove the runs that none of these names."""
        if not self.folder.is_dir():
            return
        orders = (known.get("order", {}) for known in sources)
        needed = {run for order in orders for run in (*order.get("runs", ()), *order.get("from", ()))}
        for path in self.folder.iterdir():
            if path.name not in needed:
                files().remove(path)

    def _save_changed(self, known: Progress) -> dict[str, Any]:
        order = known.get("order", {})
        if not order.get("partitions"):
            return dict(known)
        before = order.get("runs", [])
        return {**known, "order": {"runs": self._added(before, order["partitions"]), "from": before, "partitions": []}}

    def _added(self, runs: Sequence[str], texts: Sequence[str]) -> list[str]:
        """The runs with one more, which those that are not much larger are merged into."""
        kept, texts, size = list(runs), list(texts), sum(map(len, texts))
        while kept and (larger := int(kept[-1].rpartition("-")[2], 16)) <= _MUCH * size:
            texts.insert(0, self._read(kept.pop()))
            size += larger
        make_folder(self.folder, "the progress of streams")
        text = newest(texts).encode()
        run = f"{uuid4().hex}-{digest(text)}"
        replace_file(self.folder / run, text)
        return [*kept, run]

    def _read(self, run: str) -> str:
        path = self.folder / run
        try:
            content = files().read(path)
        except FileNotFoundError:
            raise missing(path) from None
        if not run.endswith(f"-{digest(content)}"):
            raise damaged_file(path)
        return content.decode()


def changed_order(edge: Ingress, runs: Sequence[str]) -> Order:
    """The state of an edge's order: what has changed since the runs that it began with."""
    order = edge.order.changes()
    return {**order, "runs": list(runs)} if "partitions" in order else order
