"""A live run on Spark from outside: it is asked, changed, interrupted, and goes on; Spark starts once for all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import scripts, test_latest
from tests.e2e.commands import Started, absolute, chatter
from tests.e2e.test_control import come_and_go, have_come_and_gone
from tests.e2e.test_latest import add_first, asked_after_another, asked_at_work, asked_when_ended

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.usefixtures("spark_session")
def test_a_live_run_answers_changes_and_ends_in_order_and_quietly_on_spark(tmp_path: Path) -> None:
    (tmp_path / "ticks").mkdir()
    script = absolute(scripts.project(tmp_path, scripts.SCRIPT + test_latest.SCRIPT, files=2))
    run = ["run", script, "--master", "local[2]", "--checkpoint", "state"]
    add_first(tmp_path)
    with Started(*run, "--trigger", "200 milliseconds", folder=tmp_path) as started:
        asked_at_work(tmp_path)
        come_and_go(tmp_path, "prices")
        # A terminal interrupts all processes of the command.
        code, out, said = started.interrupt(everything=True)
    assert (code, out) == (0, ""), said
    assert chatter(said) == []
    assert "links: 8 rows" in said
    asked_when_ended(tmp_path)
    asked_after_another(tmp_path, run, "--until-end")
    have_come_and_gone(tmp_path)


def test_a_start_of_spark_is_shown_and_an_interrupt_answered_before_it_is_over(tmp_path: Path) -> None:
    script = scripts.project(tmp_path, scripts.SCRIPT, files=1)
    with Started("run", script, "--master", "local[1]", folder=tmp_path) as started:
        assert started.process.stderr is not None
        line = started.process.stderr.readline()
        code, out, said = started.interrupt(everything=True)
    assert line == "starting Spark: 1 s\n"
    assert (code, out) == (130, "")
    assert said.splitlines()[-1] == "stopping ..." and "Traceback" not in said
