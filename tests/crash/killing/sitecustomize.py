"""Kills processes of a run at named points; every Python that has this folder on its PYTHONPATH loads it at its start.

Rules:
- A point is a function, named as "module:Class.method" or "module:function", and a moment: before a call of it, after
  it, or inside it: after the first item of what it yields.
- Whom to kill: "all", the driver with its JVM, as one; "driver", "jvm" or "worker", that process alone.
- Calls are counted over all processes of a run, in a folder that they share, so that a kill happens once.
- Without its two variables in the environment it does nothing.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

KILLS = "MILLRACE_TEST_KILLS"
FOLDER = "MILLRACE_TEST_KILLS_FOLDER"

Kill = dict[str, Any]
"""A `point`, the moment (`when`), the number of the call (`call`, from 1) and whom to kill (`who`)."""


def ticket(kill: Kill) -> int:
    """How many calls there have been with this one, in all processes."""
    path = Path(os.environ[FOLDER], f"{kill['number']}.calls")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)


def strike(kill: Kill) -> None:
    """Count a call, and kill if it is the one."""
    if ticket(kill) != kill["call"]:
        return
    Path(os.environ[FOLDER], f"{kill['number']}.done").touch()
    java = java_above()
    if kill["who"] == "driver" and java:
        # Its Java lives on until it notices, and so does this process.
        os.kill(parent_of(java)[1], signal.SIGKILL)
        return
    if kill["who"] == "all" and java:
        os.killpg(os.getpgid(java), signal.SIGKILL)
    if kill["who"] == "jvm" and java:
        os.kill(java, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def java_above() -> int:
    """The Java process that started this one, perhaps by way of another; 0 if none did."""
    process = os.getpid()
    while process > 1:
        name, parent = parent_of(process)
        if name == "java":
            return process
        process = parent
    return 0


def parent_of(process: int) -> tuple[str, int]:
    """The name of a process, and the one that started it."""
    name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
    return name, int(rest.split()[1])


def wrapped(function: Callable[..., Any], kill: Kill) -> Callable[..., Any]:
    """The function, with the kill before, after or inside it."""

    @functools.wraps(function)
    def around(*arguments: Any, **named: Any) -> Any:
        if kill["when"] == "before":
            strike(kill)
        given = function(*arguments, **named)
        if kill["when"] == "after":
            strike(kill)
        return struck_inside(given, kill) if kill["when"] == "inside" else given

    return around


def struck_inside(items: Iterator[Any], kill: Kill) -> Iterator[Any]:
    """The items, with the kill after the first."""
    for number, item in enumerate(items):
        yield item
        if number == 0:
            strike(kill)


def patch(module: ModuleType, kill: Kill) -> None:
    """Put the kill around its function."""
    *path, name = kill["point"].partition(":")[2].split(".")
    owner: Any = functools.reduce(getattr, path, module)
    setattr(owner, name, wrapped(getattr(owner, name), kill))


class Patching(Loader):
    """Loads a module as its own loader does, and then puts the kills into it."""

    def __init__(self, loader: Loader, kills: list[Kill]) -> None:
        self.loader, self.kills = loader, kills

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        for kill in self.kills:
            patch(module, kill)


class Finder(MetaPathFinder):
    """Finds the modules in which there is something to kill."""

    def __init__(self, kills: list[Kill]) -> None:
        self.kills = kills

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        own = [kill for kill in self.kills if kill["point"].partition(":")[0] == name]
        if not own:
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = next((spec for each in others if (spec := each.find_spec(name, path, target))), None)
        if found is not None and found.loader is not None:
            found.loader = Patching(found.loader, own)
        return found


if os.environ.get(KILLS) and os.environ.get(FOLDER):
    sys.meta_path.insert(0, Finder(json.loads(os.environ[KILLS])))
