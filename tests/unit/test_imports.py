"""The import directions, as code: cli, figures -> language -> plan -> kernel <- hosts, connectors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "millrace"

# What each layer may import of the others; a layer that is not named here stands on top and may import all but cli.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "kernel": {"errors"},
    "plan": {"errors", "kernel"},
    "language": {"errors", "kernel", "plan"},
    "connectors": {"errors", "kernel", "plan"},
    "writers": set(),
    "hosts": {"errors", "kernel", "plan", "connectors", "writers"},
}
HOSTS = {"local", "virtual", "spark"}
KERNEL_PACKAGES = {"numpy", "pyarrow"}
NOT_IN_KERNEL = {"time", "datetime", "threading", "asyncio", "os", "io", "socket", "random"}
ONLY_IN = {
    "sqlglot": ("millrace.language",),
    "pyspark": ("millrace.hosts.spark", "millrace.experiments.stock_spark"),
    "py4j": ("millrace.hosts.spark",),
}


def module_name(path: Path) -> str:
    parts = ("millrace", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imports_in(text: str, module: str, is_package: bool = False) -> Iterator[str]:
    """The full names of everything a module imports, wherever in its text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def layer(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def host(name: str) -> str | None:
    parts = name.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "hosts" and parts[2] in HOSTS else None


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def complaints(module: str, imported: str) -> Iterator[str]:
    """Why a module may not import something; nothing if it may."""
    top, own = imported.split(".")[0], layer(module)
    if top == "millrace":
        other = layer(imported)
        if own in ALLOWED and other not in ALLOWED[own] | {own}:
            yield f"{own} does not import {other or 'the package itself'}"
        if other == "commands" and own not in ("commands", "__main__"):
            yield "nobody imports commands"
        if own == "hosts" and host(imported) not in (None, host(module)):
            yield "hosts do not import each other, nor does what they share import a host"
    elif top in ONLY_IN and not any(is_within(module, room) for room in ONLY_IN[top]):
        yield f"{top} is imported in {' and '.join(ONLY_IN[top])} alone"
    elif own == "kernel" and (
        top in NOT_IN_KERNEL or (top not in KERNEL_PACKAGES and top not in sys.stdlib_module_names)
    ):
        yield f"the kernel does not import {top}"


@pytest.mark.parametrize("module", modules())
def test_imports_point_one_way(module: str) -> None:
    path = modules()[module]
    found = imports_in(path.read_text(), module, path.name == "__init__.py")
    assert [f"{name}: {why}" for name in found for why in complaints(module, name)] == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("millrace.kernel.graph.executor", "time"),
        ("millrace.kernel.graph.executor", "pandas.DataFrame"),
        ("millrace.kernel.graph.executor", "millrace.plan.nodes.query_network"),
        ("millrace.plan.physical.stages", "millrace.language.grammar.dialect"),
        ("millrace.plan.physical.stages", "sqlglot.exp"),
        ("millrace.hosts.local.host", "millrace.hosts.virtual.host.run"),
        ("millrace.hosts.local.host", "pyspark"),
        ("millrace.hosts.report", "millrace.hosts.local.host.run"),
        ("millrace.connectors.files.file_reader", "millrace.hosts.local.host"),
        ("millrace.testing.tables", "millrace.commands.command_line.main"),
    ],
)
def test_an_import_against_the_direction_is_noticed(module: str, imported: str) -> None:
    assert list(complaints(module, imported))


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("millrace.kernel.graph.executor", "millrace.kernel.graph.graph.Graph"),
        ("millrace.kernel.graph.executor", "collections.abc.Iterator"),
        ("millrace.hosts.spark.session.session", "pyspark.sql.SparkSession"),
        ("millrace.hosts.local.host", "millrace.hosts.report.Listeners"),
        ("millrace.testing.tables", "millrace.hosts.local.host.run"),
        ("millrace.commands.doctor", "millrace.hosts.spark.session.session"),
    ],
)
def test_an_import_in_the_direction_is_let_through(module: str, imported: str) -> None:
    assert not list(complaints(module, imported))


def test_relative_imports_are_understood() -> None:
    assert list(imports_in("from . import nodes", "millrace.plan.stages")) == ["millrace.plan.nodes"]
    assert list(imports_in("from ..kernel import graph", "millrace.plan", is_package=True)) == ["millrace.kernel.graph"]
