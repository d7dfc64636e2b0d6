"""The notebook among the examples: its cells run one after another, and what they end with shows itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_cells(path: Path) -> list[Any]:
    """What each cell of code ends with, as a notebook would get it to show."""
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            *body, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(body, []), str(path), "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), str(path), "eval"), names))
            else:
                exec(compile(ast.Module([last], []), str(path), "exec"), names)
    return shown


def test_the_notebook_runs_and_its_objects_show_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    relation, network, handle, table, why, both, metrics = run_cells(EXAMPLES / "notebook.ipynb")
    assert "<caption>SELECT" in relation._repr_html_() and "<td>TIMESTAMP</td>" in relation._repr_html_()
    assert network._repr_html_().startswith("<svg") and "per_hour" in network._repr_html_()
    assert "ended" in handle._repr_html_()
    assert list(table.columns) == ["window_start", "window_end", "origin", "flights", "late"] and len(table) == 5
    assert 'both waits for stream "orders"' in str(why)
    assert both["user"].tolist() == ["ann"]
    assert "<td>clicks</td><td>1</td>" in metrics._repr_html_()


def test_a_network_without_a_query_shows_its_statements() -> None:
    import millrace as mr

    net = mr.Network()
    net.stream("clicks", "ts TIMESTAMP", time="ts", source=mr.Pushed())
    assert net._repr_html_().startswith("<pre>CREATE STREAM clicks")
