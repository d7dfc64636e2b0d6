"""Which room may import which, as a table; and how a room is kept."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
"""All of the source is parsed: `make check` does it by itself, before the fast tests."""

SOURCE = Path(__file__).parents[2] / "src" / "millrace"

# A room is a folder or a file below src/millrace; what has no row of its own belongs to the longest row above it. A
# room may import itself and what its row names (`plan/*`: all rooms of the plan). A row names only rooms before it.
MAY_IMPORT = {
    "errors": "",
    "secrets": "errors",
    "callers": "errors",
    "source_index": "",
    # The kernel: what travels along arcs, the contract of an operator, segments, metrics; then its rooms.
    "kernel": "",
    "kernel/columns": "errors kernel",
    "kernel/stores": "kernel kernel/columns",
    "kernel/aggregates": "errors kernel kernel/columns kernel/stores",
    "kernel/progress": "errors kernel kernel/columns kernel/stores kernel/aggregates",
    "kernel/relational": "kernel kernel/columns kernel/stores",
    "kernel/joins": "errors kernel kernel/columns kernel/stores kernel/progress",
    "kernel/updates": "errors kernel kernel/columns kernel/stores kernel/progress kernel/aggregates",
    "kernel/baselines": "kernel kernel/columns kernel/stores kernel/aggregates kernel/updates",
    "kernel/graph": "errors kernel kernel/progress kernel/updates",
    "kernel/operator_index": "kernel kernel/relational kernel/aggregates kernel/joins kernel/updates kernel/progress",
    # The plan: frozen nodes, then what is made of them.
    "plan/nodes": "kernel kernel/*",
    "plan/joins": "kernel/* plan/nodes",
    "plan/updates": "errors kernel/* plan/nodes",
    "plan/rules": "kernel/* plan/nodes",
    "plan/physical": "errors kernel kernel/* plan/nodes plan/rules plan/updates",
    "plan/explain": "kernel kernel/* plan/nodes plan/joins plan/physical plan/updates",
    "plan/evolution": "errors kernel kernel/* plan/explain plan/nodes plan/physical",
    "plan": "",
    # The language: text to bound statements.
    "language/grammar": "errors secrets",
    "language/expressions": "errors kernel kernel/* plan/* language/grammar",
    "language/windows": "errors kernel kernel/* plan/* language/grammar language/expressions",
    "language/declarations": "errors secrets source_index kernel kernel/* plan/* language/grammar language/expressions",
    "language/joins": "errors kernel kernel/* plan/* language/grammar language/expressions language/windows",
    "language/select": "errors kernel/* plan/* language/grammar language/expressions language/windows language/joins",
    "language/updates": "errors kernel/* plan/* language/grammar language/expressions language/declarations "
    "language/select",
    "language": "errors kernel kernel/* plan/* language/*",
    # Connectors and hosts. No host imports another one.
    "connectors": "errors secrets source_index kernel kernel/* plan/nodes",
    "hosts": "errors secrets kernel kernel/* plan/* connectors",
    "hosts/local": "errors kernel kernel/* plan/* connectors hosts",
    "hosts/virtual": "errors kernel kernel/* plan/* connectors hosts",
    "hosts/spark": "errors secrets kernel kernel/* plan/* connectors hosts",
    # What files hold that nobody has described.
    "survey": "errors kernel kernel/* plan/nodes plan/explain connectors hosts",
    # What the live page shows of a run, on any host.
    "dashboard": "kernel plan/* hosts",
    # What people use, and what shows it. Nobody imports the commands.
    "api": "errors callers secrets kernel plan/* language language/* connectors hosts hosts/* dashboard",
    "__init__": "api callers connectors errors hosts kernel/* language",
    "testing": "errors kernel kernel/* plan/* language connectors hosts hosts/local hosts/spark api",
    "experiments": "errors kernel kernel/* plan/* language language/* hosts hosts/virtual api",
    "commands": "errors secrets kernel plan/* language connectors survey hosts hosts/spark api experiments __init__",
    "__main__": "commands",
}
BOTH_WAYS = {("kernel/updates", "kernel/baselines")}
"""A queue chooses its policy, a baseline among them, and a baseline is made of a queue's parts."""
OUTSIDE_KERNEL = {"time", "datetime", "threading", "asyncio", "os", "io", "socket", "random"}
"""Modules of the standard library that the kernel must not import: time and I/O are arguments."""
KERNEL_PACKAGES = {"numpy", "pyarrow"}
ONLY_IN = {"sqlglot": ("language",), "pyspark": ("hosts/spark", "experiments"), "py4j": ("hosts/spark",)}
MOST_FILES = 15


@cache
def modules() -> dict[str, Path]:
    """Every module by its place below src/millrace, without the suffix; a package by its folder."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).with_suffix("")
        found[str(place if place.name != "__init__" or place.parent == Path() else place.parent)] = path
    return found


@cache
def parsed(place: str) -> ast.Module:
    return ast.parse(modules()[place].read_text())


def room_of(place: str) -> str:
    """The row of the table that a module belongs to: the longest that contains it."""
    return max((room for room in MAY_IMPORT if place == room or place.startswith(room + "/")), key=len, default="")


@cache
def imports(place: str) -> list[str]:
    return list(imports_in(parsed(place), place, modules()[place].name == "__init__.py"))


def imports_in(tree: ast.Module, place: str, is_package: bool = False) -> Iterator[str]:
    """The full names of everything a module imports, wherever in its text."""
    module = ["millrace", *place.split("/")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module[: len(module) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def place_of(imported: str) -> str:
    """The place of an imported module of ours, or of the module that an imported name stands in."""
    place = imported.removeprefix("millrace").removeprefix(".").replace(".", "/")
    while place and place not in modules():
        place = place.rpartition("/")[0]
    return place or "__init__"


def complaints(place: str, imported: str) -> Iterator[str]:
    """Why a module may not import something; nothing if it may."""
    top, room = imported.split(".")[0], room_of(place)
    if top == "millrace":
        other = room_of(place_of(imported))
        if (
            other != room
            and (room, other) not in BOTH_WAYS
            and not any(_covers(row, other) for row in MAY_IMPORT[room].split())
        ):
            yield f"{room} may not import {other}"
    elif top in ONLY_IN:
        if not place.startswith(ONLY_IN[top]):
            yield f"only {' and '.join(ONLY_IN[top])} may import {top}"
    elif place.startswith("kernel/") and (
        top in OUTSIDE_KERNEL or (top not in KERNEL_PACKAGES and top not in sys.stdlib_module_names)
    ):
        yield f"the kernel may not import {top}"


def _covers(row: str, room: str) -> bool:
    """True if a name in a row stands for a room: its own, or with a star all rooms below a folder."""
    return row == room or (row.endswith("/*") and room.startswith(row[:-1]))


def test_a_room_imports_what_its_row_names() -> None:
    found = [(place, name) for place in modules() for name in imports(place)]
    assert [f"{place}: {name}: {why}" for place, name in found for why in complaints(place, name)] == []


def test_every_module_has_a_room() -> None:
    assert [place for place in modules() if not room_of(place)] == []


def test_a_row_names_only_rooms_before_it() -> None:
    rooms = list(MAY_IMPORT)
    wrong = [
        (room, named)
        for position, room in enumerate(rooms)
        for named in MAY_IMPORT[room].split()
        if not any(_covers(named, before) for before in rooms[:position])
    ]
    assert wrong == []


def test_a_row_names_nothing_that_its_room_does_not_import() -> None:
    used = {
        (room_of(place), room_of(place_of(name)))
        for place in modules()
        for name in imports(place)
        if name.startswith("millrace")
    }
    needless = [
        (room, named)
        for room, row in MAY_IMPORT.items()
        for named in row.split()
        if not any(mine == room and _covers(named, other) for mine, other in used)
    ]
    assert needless == []


def test_a_room_has_at_most_fifteen_files_and_a_map() -> None:
    folders = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    full = {str(folder.relative_to(SOURCE)): files for folder, files in folders.items() if files > MOST_FILES}
    unmapped = [place for place, path in modules().items() if path.name == "__init__.py" and _map_lines(place) < 3]
    assert (full, unmapped) == ({}, [])


def _map_lines(place: str) -> int:
    return len(_map_of(place).splitlines())


def _map_of(place: str) -> str:
    return ast.get_docstring(parsed(place)) or ""


def test_the_map_of_a_room_names_all_that_is_in_it() -> None:
    places = [place for place in modules() if "/" in place and not place.endswith("__main__")]
    rooms = [(place.rpartition("/")[0], place.rpartition("/")[2]) for place in places]
    assert [f"{room}: {name}" for room, name in rooms if not re.search(rf"\b{name}\b", _map_of(room))] == []


def test_a_file_name_means_one_thing() -> None:
    """Hosts are mirrored, so their files may share names; nothing else may."""
    names = Counter(
        path.stem for place, path in modules().items() if path.stem != "__init__" and not _is_mirrored(place)
    )
    assert [name for name, files in names.items() if files > 1] == []


def test_a_class_name_means_one_thing() -> None:
    """An operator of the kernel and the node of the plan that it carries out share their name; nothing else does."""
    places = [
        (node.name, "plan/nodes" if place.startswith("plan/nodes/") else place.partition("/")[0])
        for place in modules()
        for node in parsed(place).body
        if isinstance(node, ast.ClassDef)
    ]
    twice = [name for name, count in Counter(name for name, _ in places).items() if count > 1]
    assert [
        name for name in twice if sorted(room for each, room in places if each == name) != ["kernel", "plan/nodes"]
    ] == []


def test_the_folders_of_unit_tests_mirror_the_rooms() -> None:
    tests = Path(__file__).parent
    folders = {str(path.parent.relative_to(tests)) for path in tests.rglob("test_*.py")}
    assert sorted(each for each in folders if each != "scripts" and not (SOURCE / each).is_dir()) == []


def _is_mirrored(place: str) -> bool:
    return place.startswith(("hosts/local/", "hosts/virtual/", "hosts/spark/"))


@pytest.mark.parametrize(
    ("place", "imported"),
    [
        ("kernel/graph/executor", "time"),
        ("kernel/graph/executor", "pandas.DataFrame"),
        ("kernel/graph/executor", "millrace.plan.nodes"),
        ("kernel/columns/expressions", "millrace.kernel.joins"),
        ("plan/physical/stages", "millrace.language.grammar.text.dialect"),
        ("plan/physical/stages", "sqlglot.exp"),
        ("hosts/local/host", "millrace.hosts.virtual.host"),
        ("hosts/local/host", "pyspark"),
        ("hosts/report", "millrace.hosts.local.host"),
        ("connectors/files/csv", "millrace.hosts.local"),
        ("testing/tables", "millrace.commands"),
    ],
)
def test_an_import_against_the_table_is_noticed(place: str, imported: str) -> None:
    assert list(complaints(place, imported))


@pytest.mark.parametrize(
    ("place", "imported"),
    [
        ("kernel/graph/executor", "millrace.kernel.graph.graph.Graph"),
        ("kernel/graph/executor", "collections.abc.Iterator"),
        ("hosts/spark/session/session", "pyspark.sql.SparkSession"),
        ("hosts/local/host", "millrace.hosts.report.Listeners"),
        ("testing/tables", "millrace.errors.MillraceError"),
        ("commands/doctor", "millrace.hosts.spark.session"),
    ],
)
def test_an_import_by_the_table_is_let_through(place: str, imported: str) -> None:
    assert not list(complaints(place, imported))


def test_relative_imports_are_understood() -> None:
    assert list(imports_in(ast.parse("from . import nodes"), "plan/stages")) == ["millrace.plan.nodes"]
    assert list(imports_in(ast.parse("from ..kernel import graph"), "plan", is_package=True)) == [
        "millrace.kernel.graph"
    ]
