"""Worker processes import what the driver can: classes and functions of the user's own are named by their place."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def import_paths() -> tuple[str, ...]:
    """Where this process looks for modules."""
    return tuple(path for path in sys.path if path)


def look_in(paths: Iterable[str]) -> None:
    """Look for modules there too, after all other places."""
    sys.path += [path for path in paths if path not in sys.path]
