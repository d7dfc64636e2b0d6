"""Files of Spark's own that a power cut has torn, removed before Spark reads them.

Spark does not sync the files of its checkpoint. The sink syncs the disk before it commits a micro-batch (see
sink/network_sink.py), so all that Spark had written for the batches on record is whole. What it wrote later may be
empty or cut off, and Spark would refuse to start.

Rules:
- What belongs to the batches on record is never touched: damage there is for Spark to find.
- Without any record nothing has been given to a sink: torn files then mean that Spark's part begins anew.
- A snapshot of state that is torn is removed: Spark goes on from the one before it and the changes since. It is later
  than the record by its number or by its time, for Spark writes snapshots of earlier batches at any time, and a clock
  may be set back. One that bears the very time of the record may be later: a file's time goes in steps of milliseconds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from zipfile import is_zipfile

_NONE = -1


def remove_torn(checkpoint: Path, newest: int | None) -> None:
    """Remove what is torn and later than the newest batch on record."""
    folder, last, recorded = checkpoint / "spark", _NONE, 0
    if newest is not None:
        last, recorded = newest, (checkpoint / "commits" / f"{newest:08d}.json").stat().st_mtime_ns
    torn = [path for path in _later(folder, last) if not _is_whole(path)]
    if last == _NONE and torn:
        shutil.rmtree(folder)
        return
    for path in torn:
        _remove(path)
    for snapshot in folder.glob("state/*/*/**/*.zip"):
        later = _version(snapshot) > last + 1 or snapshot.stat().st_mtime_ns >= recorded
        if later and not _is_whole_snapshot(snapshot):
            _remove(snapshot)


def _later(folder: Path, last: int) -> Iterator[Path]:
    """Spark's records of batches after the last one on record; its own commit of that one comes after ours."""
    for path in (*folder.glob("offsets/*"), *folder.glob("state/*/_metadata/v2/*")):
        if path.name.isdigit() and int(path.name) > last:
            yield path
    for path in folder.glob("commits/*"):
        if path.name.isdigit() and int(path.name) >= last:
            yield path
    for path in (folder / "metadata", *folder.glob("state/*/_stateSchema/*/*")) if last == _NONE else ():
        if path.exists() and (path.name == "metadata" or not path.stat().st_size):
            yield path


def _is_whole(path: Path) -> bool:
    """True if a record of Spark's can be read: a version and lines of JSON, of which offsets have two or more; before
    those of a source stands its name and a colon."""
    least = {"metadata": 1, "offsets": 3}.get(path.name if path.name == "metadata" else path.parent.name, 2)
    try:
        lines = [line for line in path.read_text().split("\n") if line]
        for line in lines[least > 1 :]:
            value = line if line.startswith("{") else line.partition(":")[2] or line
            if value != "-":
                json.loads(value)
    except ValueError:
        return False
    return len(lines) >= least


def _version(snapshot: Path) -> int:
    """The version of state in a snapshot: that after batch n is n + 1."""
    number = snapshot.stem.partition("_")[0]
    return int(number) if number.isdigit() else 0


def _is_whole_snapshot(path: Path) -> bool:
    return is_zipfile(path) and all(each.stat().st_size for each in path.parent.glob("SSTs/*.sst"))


def _remove(path: Path) -> None:
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
