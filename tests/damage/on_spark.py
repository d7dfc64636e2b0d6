"""Runs on Spark itself, in one session: damage to our files and, to know what it does, to Spark's own."""

from __future__ import annotations

import os
import random
import shutil
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from millrace.errors import MillraceError
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.report import Ending
from millrace.hosts.run_options import RunOptions
from millrace.hosts.spark.host import SparkRun
from millrace.language import bind_changes, parse_network, read_file
from tests.damage.damages import draw, files_in, put_files
from tests.damage.networks import FILES, Rows, results, script
from tests.damage.on_local import Case, named_by, outcome_of

_THIRD = FILES // 3


@dataclass(frozen=True)
class Site:
    """A checkpoint after two thirds of the input, copies of it and of its results, and what must come out."""

    network: str
    folder: Path
    session: SparkSession
    expected: Rows


def _run(session: SparkSession, folder: Path, name: str, files: Iterable[int], ending: Ending) -> str:
    """Add files of the input, and run; what it says if it fails, an internal error with its traceback."""
    for stream in ("links", "rates"):
        for number in files:
            shutil.copy(folder.parent / "inputs" / stream / f"{number:04d}.csv", folder / stream)
    text = script(name).replace(", max_files_per_trigger '1'", "").replace("path '", f"path '{folder}/")
    changes = LiveChanges(parse_network(text), text, bind_changes, read_file)
    options = RunOptions("spark", ending, folder / "state", control=None)
    try:
        SparkRun(changes.network, options, changes=changes, session=session).run()
    except MillraceError as error:
        return str(error)
    # Any other error is the finding: the damage was not answered with a message of ours.
    except Exception:
        return traceback.format_exc()
    return ""


def prepared(folder: Path, name: str, session: SparkSession) -> Site:
    """A network run over two thirds of its input, with copies after each third, and what a run without damage gives."""
    for stream in ("links", "rates"):
        (folder / stream).mkdir(parents=True)
    os.chdir(folder)
    assert (said := _run(session, folder, name, range(_THIRD), "available")) == "", said
    shutil.copytree("state", "older")
    assert not _run(session, folder, name, range(_THIRD, 2 * _THIRD), "available")
    for kept in ("state", "out"):
        shutil.copytree(kept, f"{kept}-kept")
    assert not _run(session, folder, name, range(2 * _THIRD, FILES), "end")
    return Site(name, folder, session, results(folder, name))


def tried(site: Site, chance: random.Random, *, of_spark: bool) -> Case:
    """Damage one of our files, or one of Spark's own, and go on; the folder stays where it is, as Spark wants it."""
    folder = site.folder
    os.chdir(folder)
    for kept in ("state", "out"):
        shutil.rmtree(kept)
        shutil.copytree(f"{kept}-kept", kept)
    for stream in ("links", "rates"):
        for number in range(2 * _THIRD, FILES):
            (folder / stream / f"{number:04d}.csv").unlink(missing_ok=True)
    content, older = (
        {
            name: each
            for name, each in files_in(Path(place), ("lock", "spark.log")).items()
            if _is_sparks(name) == of_spark
        }
        for place in ("state", "older")
    )
    kind, file, damage = draw(content, older, chance)
    put_files(folder / "state", damage)
    said = _run(site.session, folder, site.network, range(2 * _THIRD, FILES), "end")
    named = named_by(kind, damage) if not of_spark else [""]
    outcome = outcome_of(1 if said else 0, said, results(folder, site.network), site.expected, site.network, named)
    return Case(site.network, kind, file, outcome, said[-300:])


def _is_sparks(name: str) -> bool:
    return name.startswith("spark/")
