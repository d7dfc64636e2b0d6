"""Print the ten longest files and the ten longest functions below the given folders."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SHOWN = 10


def files(folders: list[str]) -> Iterator[Path]:
    """Every Python file below the folders."""
    for folder in folders:
        yield from sorted(Path(folder).rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[int, str]]:
    """The length in lines and the place of every function in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.end_lineno - node.lineno + 1, f"{path}:{node.lineno} {node.name}"


def show(title: str, measured: list[tuple[int, str]]) -> None:
    """Print the longest of what was measured."""
    print(f"{title} (lines)")
    for length, name in sorted(measured, reverse=True)[:SHOWN]:
        print(f"  {length:5}  {name}")


def main(folders: list[str]) -> None:
    """Measure and print."""
    paths = list(files(folders or ["src"]))
    show("longest files", [(len(path.read_text().splitlines()), str(path)) for path in paths])
    show("longest functions", [each for path in paths for each in functions(path)])


if __name__ == "__main__":
    main(sys.argv[1:])
