"""What goes to executors on other machines: this package, and the user's own modules.

Rules:
- A user's module is one that this process has imported from outside Python, its installed packages and ours: classes
  and functions named in a script, and what they import. Of a package all files go, for it may import some later.
- What is installed (pyarrow, pandas, a user's own wheel) is not sent: executors must have it.
- Beside each module goes its bytecode, or every worker that starts would compile all of it; a worker of another Python
  takes the module.
- Nothing is sent twice, so that it may be asked for again when a network has changed.
"""

from __future__ import annotations

import marshal
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

from pyspark.sql import SparkSession

from millrace.hosts.spark.session.class_archive import folder_until_exit
from millrace.plan.physical.stages import Physical

PACKAGE = Path(__file__).resolve().parents[3]

_INSTALLED = ("site-packages", "dist-packages")
_SENT: dict[str, set[Path]] = {}
"""By application what has been sent."""


def ship(session: SparkSession, plan: Physical | None = None) -> None:
    """Send executors what they need to carry out a plan and have not got yet; on one machine they have it all."""
    context = session.sparkContext
    if str(context.master).startswith("local"):
        return
    if plan is not None:
        # Functions that queries call are imported when a plan is made, classes that they name when it is cut.
        plan.exchanges()
    sent = _SENT.setdefault(context.applicationId, set())
    new = [path for path in (PACKAGE, *user_code()) if path not in sent]
    if not new:
        return
    # A path is sent once, and replaces nothing: each time it is another.
    context.addPyFile(str(zipped(new, folder_until_exit() / f"millrace-{len(sent)}.zip")))
    sent.update(new)


def user_code() -> list[Path]:
    """The files and package folders of the user's that this process has imported, in the order of their names."""
    found = {_home(name, Path(file)) for name, file in _imported() if _is_users(Path(file))}
    return sorted(path for path in found if path.exists())


def zipped(paths: Iterable[Path], archive: Path) -> Path:
    """Modules and whole packages as a zip that Python can import from."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for path in paths:
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                name = file.relative_to(path.parent)
                package.write(file, name)
                if compiled := _bytecode(file):
                    package.writestr(str(name.with_suffix(".pyc")), compiled)
    return archive


def _bytecode(file: Path) -> bytes | None:
    """A module as Python has compiled it, marked as not to be compared with its file; None if it cannot be compiled."""
    try:
        code = SourceFileLoader(file.stem, str(file)).get_code(file.stem)
    except (SyntaxError, ValueError):
        # A package may hold files that are never imported.
        return None
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(file.read_bytes()) + marshal.dumps(code)


def _imported() -> Iterator[tuple[str, str]]:
    """The name and file of every module of this process that is in a file."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and name != "__main__":
            yield name, file


def _home(name: str, file: Path) -> Path:
    """What a module is part of: its outermost package, or its file alone."""
    depth = name.count(".") + (file.name == "__init__.py")
    return file.resolve() if depth == 0 else file.resolve().parents[depth - 1]


def _is_users(file: Path) -> bool:
    own = file.resolve()
    places = [PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))]
    return not any(own.is_relative_to(place) for place in places) and not any(part in _INSTALLED for part in own.parts)
