"""Results as data: a line of JSON each, with the date, the commit, the machine and the versions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
_PACKAGES = ("millrace", "pyspark", "pyarrow", "numpy", "pandas")


def circumstances() -> dict[str, Any]:
    """When, of what, on what and with what."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: found for name in _PACKAGES if (found := _version(name))},
    }


def commit() -> str:
    """The commit that is checked out, with a mark if files differ from it; "none" outside a repository."""
    try:
        found = _git("rev-parse", "--short", "HEAD").strip()
        return f"{found}-changed" if _git("status", "--porcelain").strip() else found
    except (OSError, subprocess.CalledProcessError):
        return "none"


def results(workload: str) -> Path:
    """The file of a workload's results."""
    return HERE / "results" / f"{workload}.jsonl"


def append(workload: str, around: Mapping[str, Any], lines: list[dict[str, Any]]) -> Path:
    """Add results to the workload's file."""
    path = results(workload)
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps({**around, **result}) + "\n" for result in lines)
    return path


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=True)
    return ran.stdout


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
