"""Every recipe of the cookbook gives the output that its page shows."""

from __future__ import annotations

import json
import re
import runpy
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, millrace
from tests.postgres import server

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "cookbook"
PAGES = ROOT / "docs" / "cookbook"
WITH_A_SERVER = {"upsert"}


def names(ending: str) -> list[str]:
    return sorted(path.stem for path in RECIPES.glob(f"*{ending}"))


@pytest.mark.parametrize("name", names(".sql"))
def test_a_recipe_in_sql_gives_its_output(name: str, request: pytest.FixtureRequest) -> None:
    ran = millrace("run", RECIPES / f"{name}.sql", "--on", "local", "--until-end", "--json", folder=ROOT)
    assert ran.returncode == 0, ran.stderr
    check(name, tables(ran.stdout), request)


@pytest.mark.parametrize("name", sorted({*names(".py")} - WITH_A_SERVER))
def test_a_recipe_in_python_gives_its_output(name: str, request: pytest.FixtureRequest) -> None:
    check(name, printed(name), request)


@pytest.mark.slow
def test_the_recipe_of_upserts_gives_its_output(request: pytest.FixtureRequest) -> None:
    with server() as dsn:
        check("upsert", printed("upsert", dsn), request)


def printed(name: str, *arguments: str) -> str:
    """What a recipe in Python prints."""
    out, path = StringIO(), str(RECIPES / f"{name}.py")
    with pytest.MonkeyPatch.context() as patch, chdir(ROOT), redirect_stdout(out):
        patch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")
    return out.getvalue()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["absence", "enrich_with_changes", "top_n"])
def test_a_recipe_gives_its_output_on_spark(name: str, tmp_path: Path, run_on: RunOn) -> None:
    script = re.sub(r"path '(?!/)", f"path '{ROOT}/", (RECIPES / f"{name}.sql").read_text())
    (tmp_path / "recipe.sql").write_text(script)
    ran = run_on("spark", "recipe.sql", "--until-end", "--json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert tables(ran.stdout) == (RECIPES / f"{name}.out").read_text()


def test_every_recipe_has_a_page_that_includes_it_and_its_output() -> None:
    shown = "".join(path.read_text() for path in PAGES.glob("*.md"))
    files = [path.relative_to(ROOT) for path in RECIPES.iterdir() if path.is_file() and path.suffix != ".md"]
    assert [str(path) for path in files if f'--8<-- "{path}"' not in shown] == []


def test_the_list_of_recipes_names_every_page() -> None:
    listed = re.findall(r"\]\((\w[\w-]*\.md)\)", (PAGES / "index.md").read_text())
    assert sorted(listed) == sorted(path.name for path in PAGES.glob("*.md") if path.name != "index.md")


def check(name: str, given: str, request: pytest.FixtureRequest) -> None:
    path = RECIPES / f"{name}.out"
    if request.config.getoption("--rewrite"):
        path.write_text(given)
    assert given == path.read_text()


def tables(output: str) -> str:
    """The results of each query as a table, sorted: when a row leaves is the host's affair."""
    rows: dict[str, list[dict[str, object]]] = {}
    for line in (json.loads(each, parse_float=str) for each in output.splitlines()):
        if "summary" not in line:
            rows.setdefault(line.pop("query"), []).append(line)
    return "\n".join(table(query, rows[query]) for query in sorted(rows))


def table(query: str, rows: list[dict[str, object]]) -> str:
    cells = [list(rows[0]), *sorted([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return f"# {query}\n" + "".join(f"{line}\n" for line in lines)


def text(value: object) -> str:
    return "NULL" if value is None else ", ".join(map(text, value)) if isinstance(value, list) else str(value)


def test_results_are_shown_as_aligned_tables() -> None:
    lines = ('{"query": "q", "k": "bb", "n": 1.50}', '{"query": "q", "k": "a", "n": null}', '{"summary": 1}')
    assert tables("\n".join(lines)) == "# q\nk   n\na   NULL\nbb  1.50\n"
