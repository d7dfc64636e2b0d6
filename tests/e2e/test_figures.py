"""`millrace figures` from outside."""

from __future__ import annotations

import json
from pathlib import Path
from time import sleep

import pytest

from tests.e2e.commands import Started, millrace, wait_for

pytestmark = pytest.mark.slow


def test_without_a_name_the_figures_are_listed(tmp_path: Path) -> None:
    ran = millrace("figures", folder=tmp_path)
    assert ran.returncode == 0
    assert all(name in ran.stdout for name in ("ets-latency", "slide-burstiness", "oop-skew"))


def test_a_misspelt_figure_is_a_wrong_request(tmp_path: Path) -> None:
    ran = millrace("figures", "ets-laten", folder=tmp_path)
    assert ran.returncode == 2
    assert 'Did you mean "ets-latency"?' in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    ["wjoin-analytic", *(pytest.param(name, marks=pytest.mark.long) for name in ("eqg-overhead", "oop-sliding"))],
)
def test_a_figure_is_made_and_its_claims_hold(name: str, tmp_path: Path) -> None:
    ran = millrace("figures", name, "--output", "made", "--json", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert told["as_expected"] and all(claim["holds"] is claim["reproduces"] for claim in told["claims"])
    made = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert made == [f"{name}.csv", f"{name}.svg", f"{name}.txt"]
    assert "Traceback" not in ran.stderr


def test_ctrl_c_ends_it_without_a_word(tmp_path: Path) -> None:
    with Started("figures", "ets-latency", "--output", "made", folder=tmp_path) as started:
        if (processes := Path(f"/proc/{started.process.pid}/task/{started.process.pid}/children")).exists():
            wait_for(lambda: len(processes.read_text().split()) > 1)
        sleep(1)
        code, out, err = started.interrupt(everything=True)
    assert code == 130
    assert (out, err) == ("", "")
