"""Runs on the local host, each in a process of its own: damage may make one die."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pandas  # noqa: F401 - Arrow loads it when it is first used: once here, not in every process

from millrace.commands.command_line import main
from millrace.hosts.checkpoint.checkpoint import Checkpoint
from millrace.hosts.local import host  # noqa: F401 - as above
from tests.damage.damages import copy_site, draw, files_in, put_files
from tests.damage.networks import QUEUED, Rows, results, script

OUTCOMES = ("detected", "harmless", "silently wrong", "crashed", "internal error", "not named")
_OLDER, _BASE = 2, 5
"""The commits of which copies are kept: as after a kill between the record and the results' names."""
_INTERNAL = re.compile(r"internal error|Traceback")


@dataclass(frozen=True)
class Case:
    """One damage, and what became of the run after it."""

    network: str
    kind: str
    file: str
    outcome: str
    said: str = ""


@dataclass(frozen=True)
class Site:
    """A run that was killed half-way, an earlier copy of its checkpoint, and what it must give in the end."""

    network: str
    folder: Path
    expected: Rows
    answers: str


def forked(work: Callable[[], int], said: Path) -> int:
    """The exit code of work in a forked process, negative for a signal; what it prints goes to a file."""
    child = os.fork()
    if child == 0:
        code = 99
        with contextlib.suppress(BaseException), said.open("w") as out:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    code = work()
                except BaseException:
                    traceback.print_exc()
            out.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(ending: str) -> int:
    """Run the network in this folder; the exit code."""
    options = ["--on", "local", "--checkpoint", "state", "--control", "control", "--commit-interval", "1 microsecond"]
    return main(["run", "network.sql", ending, *options])


def prepared(folder: Path, name: str) -> Site:
    """A network in a folder, run half-way, and what a run without damage gives."""
    folder.mkdir()
    (folder / "network.sql").write_text(script(name))
    for stream in ("links", "rates"):
        (folder / stream).symlink_to((folder.parent / "inputs" / stream).resolve())
    whole, first = folder.with_name(f"{folder.name}-whole"), folder.with_name(f"{folder.name}-first")
    copy_site(folder, first)
    copy_site(folder, whole)
    assert forked(lambda: _in(first, _copying), first / "said") == 0, (first / "said").read_text()
    assert forked(lambda: _in(whole, lambda: run("--until-end")), whole / "said") == 0
    shutil.copytree(first / "base", folder, symlinks=True, dirs_exist_ok=True)
    (folder / "older").mkdir()
    shutil.copytree(first / "older" / "state", folder / "older" / "state")
    again = folder.with_name(f"{folder.name}-again")
    copy_site(folder, again)
    code, answers = _went_on(again, name)
    assert code == 0, (again / "said").read_text()
    expected = results(whole, name)
    assert (found := results(again, name)) == expected, (name, found - expected, expected - found)
    return Site(name, folder, expected, answers)


def _in(folder: Path, work: Callable[[], int]) -> int:
    os.chdir(folder)
    return work()


def _copying() -> int:
    """A run that leaves copies of what it had on disk right after two of its commits."""
    save = Checkpoint.save

    def saved(self: Checkpoint, epoch: int, *given: object) -> None:
        save(self, epoch, *given)  # type: ignore[arg-type]
        if epoch in (_OLDER, _BASE):
            copy = Path("older" if epoch == _OLDER else "base")
            for name in ("state", "out"):
                shutil.copytree(name, copy / name)

    with patch.object(Checkpoint, "save", saved):
        return run("--available-now")


def _went_on(folder: Path, network: str) -> tuple[int, str]:
    """How a run that goes on ends, and its latest answers as the command line prints them."""
    code, answers = forked(lambda: _in(folder, lambda: run("--until-end")), folder / "said"), ""
    if code == 0 and network in QUEUED:
        code = forked(lambda: _in(folder, lambda: main(["latest", "state", "q", "--json"])), folder / "answers")
        answers = "\n".join(sorted((folder / "answers").read_text().splitlines()))
    return code, answers


def tried(site: Site, folder: Path, chance: random.Random) -> Case:
    """Damage a copy of the checkpoint and go on from it."""
    copy_site(site.folder, folder)
    kind, file, damage = draw(files_in(folder / "state"), files_in(folder / "older" / "state"), chance)
    put_files(folder / "state", damage)
    code, answers = _went_on(folder, site.network)
    said = (folder / "said").read_text()
    named = named_by(kind, damage)
    outcome = outcome_of(code, said, results(folder, site.network), site.expected, site.network, named)
    if outcome == "harmless" and answers != site.answers:
        outcome = "silently wrong"
    return Case(site.network, kind, file, outcome, "" if outcome == "harmless" else said.strip()[-400:])


def named_by(kind: str, damage: Mapping[str, object]) -> list[str]:
    """What an error may say: the damaged files; where one is of an earlier commit, any file that does not fit it."""
    return [*(Path(name).name for name in damage), *([".arrow", ".json"] if kind == "older" else [])]


def outcome_of(code: int, said: str, found: Rows, expected: Rows, network: str, named: Sequence[str]) -> str:
    """What became of a run, by its exit code, what it said and its results; an error names one of the files."""
    if code < 0:
        return "crashed"
    if code == 0:
        return "harmless" if found == expected else "silently wrong"
    if code == 99 or _INTERNAL.search(said):
        return "internal error"
    if network not in QUEUED and found - expected:
        return "silently wrong"
    return "detected" if any(each in said for each in named) else "not named"
