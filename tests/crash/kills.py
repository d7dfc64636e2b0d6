"""Runs that are killed at named points of their work, from inside, by `killing/sitecustomize.py`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal
from unittest.mock import patch

HERE = Path(__file__).parent / "killing"


@dataclass(frozen=True)
class Kill:
    """A kill at the `call`-th time that a run comes to a point; `who` is "all" for the driver and its JVM at once."""

    point: str
    when: Literal["before", "inside", "after"] = "before"
    call: int = 1
    who: Literal["all", "driver", "jvm", "worker"] = "all"


@contextmanager
def killing(*kills: Kill) -> Iterator[Struck]:
    """A block in which the runs that are started are killed so; says which kills have happened."""
    folder = Path(mkdtemp(prefix="millrace-kills-"))
    told = [{"number": number, **asdict(kill)} for number, kill in enumerate(kills)]
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    changed = {
        "MILLRACE_TEST_KILLS": json.dumps(told),
        "MILLRACE_TEST_KILLS_FOLDER": str(folder),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    with patch.dict(os.environ, changed):
        yield Struck(folder, kills)


@dataclass(frozen=True)
class Struck:
    """What has become of the kills of a block."""

    folder: Path
    kills: tuple[Kill, ...]

    def __call__(self) -> bool:
        """Whether all have happened."""
        return not self.missing()

    def missing(self) -> list[Kill]:
        """Those that have not happened."""
        return [kill for number, kill in enumerate(self.kills) if not (self.folder / f"{number}.done").exists()]
