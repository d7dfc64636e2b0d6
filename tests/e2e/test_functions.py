"""Functions of the user's own from the command line, in a module beside the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, millrace, millrace_process

pytestmark = pytest.mark.slow

MODULE = """
import pyarrow.compute as pc
import millrace as mr
from rates import RATE

def price(amount, kind):
    if kind == "broken":
        raise ValueError("it is broken")
    return None if amount is None else amount * RATE

@mr.columns
def shout(words):
    return pc.utf8_upper(words)
"""
SCRIPT = """
CREATE STREAM sales (kind STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'sales.csv');
CREATE FUNCTION price(DOUBLE, STRING) RETURNS DOUBLE LANGUAGE PYTHON AS 'shop.prices:price';
CREATE FUNCTION shout(STRING) RETURNS STRING LANGUAGE PYTHON AS 'shop.prices:shout';
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE QUERY priced INTO out AS
  SELECT shout(kind) AS kind, sum(price(amount, kind)) AS total FROM sales [RANGE 1 MINUTE SLIDE 1 MINUTE]
  WHERE price(amount, kind) > 1 AND exists(array(amount), each -> price(each, kind) > 1) GROUP BY shout(kind);
"""
ROWS = """kind,amount,ts
a,1,2024-01-01 00:00:01
a,2,2024-01-01 00:00:02
b,3,2024-01-01 00:00:03
a,,2024-01-01 00:00:04
"""


def project(folder: Path, rows: str = ROWS) -> Path:
    """A file of queries with a package and a module beside it."""
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "prices.py").write_text(MODULE)
    (folder / "rates.py").write_text("RATE = 1.5\n")
    (folder / "sales.csv").write_text(rows)
    (folder / "sales.sql").write_text(SCRIPT)
    return folder / "sales.sql"


def totals(folder: Path) -> list[str]:
    lines = [line for each in (folder / "out").rglob("*.csv") for line in each.read_text().splitlines()[1:]]
    return sorted(line.replace('"', "") for line in lines)


def test_a_module_beside_the_file_is_called(tmp_path: Path) -> None:
    ran = millrace_process("run", project(tmp_path), "--on", "local", "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert totals(tmp_path) == ["A,4.5", "B,4.5"]


@pytest.mark.spark
def test_a_module_beside_the_file_is_called_on_spark(run_on: RunOn, tmp_path: Path) -> None:
    ran = run_on("spark", project(tmp_path), "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert totals(tmp_path) == ["A,4.5", "B,4.5"]


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_row_that_it_fails_on_is_shown(host: str, run_on: RunOn, tmp_path: Path) -> None:
    script = project(tmp_path, ROWS + "broken,7,2024-01-01 00:00:05\n")
    ran = run_on(host, script, "--until-end", folder=tmp_path)
    assert ran.returncode == 1
    assert "function \"price\" failed for (7.0, 'broken'): ValueError: it is broken" in ran.stderr
    assert "shop.prices:price" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_check_and_explain_look_for_the_code(tmp_path: Path) -> None:
    script = project(tmp_path)
    assert "price(amount, kind)" in millrace("explain", script, folder=tmp_path).stdout
    assert millrace("check", script, folder=tmp_path).returncode == 0
    script.write_text(SCRIPT.replace("prices:price'", "prices:cost'"))
    for command in ("check", "explain", "run"):
        ran = millrace(command, script, folder=tmp_path)
        assert ran.returncode == 2
        assert 'function "price" is not found at "shop.prices:cost"' in ran.stderr
