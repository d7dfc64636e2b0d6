"""kill -9 around a refresh of a table: it was taken into use whole or not at all, and a replay meets the same rows."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from millrace.errors import MillraceError
from millrace.hosts.control.request_folder import ask
from tests.crash.kills import Kill, killing
from tests.e2e.commands import Started
from tests.e2e.test_tables import Site

TABLES, PLANS = "millrace.hosts.tables.run_tables:RunTables", "millrace.hosts.spark.commit_log.plan_log:PlanLog"
WRITTEN = "millrace.hosts.tables.table_files:write_version"
LONG = (pytest.mark.spark, pytest.mark.long)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "kill", "lasts"),
    [
        # Two tables are read at the start, the third time is the refresh: its file is there, and no record names it.
        pytest.param("local", Kill(WRITTEN, "after", 3), False, marks=pytest.mark.long),
        ("local", Kill(f"{TABLES}.put", "after"), False),
        ("local", Kill(f"{TABLES}.settled"), True),
        pytest.param("spark", Kill(f"{TABLES}.put", "after"), False, marks=LONG),
        pytest.param("spark", Kill(f"{PLANS}.write", "before", 2), True, marks=LONG),
    ],
    ids=lambda each: each.point.rpartition(":")[2] if isinstance(each, Kill) else str(each),
)
def test_a_refresh_that_was_killed_is_in_force_whole_or_not_at_all(
    host: str, kill: Kill, lasts: bool, tmp_path: Path
) -> None:
    site, state = Site(tmp_path, seed=3), tmp_path / "state"
    run = ["run", tmp_path / "site.sql", "--on", host, "--checkpoint", state]
    site.click(10)
    with killing(kill) as struck, Started(*run, folder=tmp_path) as process:
        site.check()
        site.change_users()
        with suppress(MillraceError):
            ask(state, "REFRESH TABLE users", timeout=60)
        process.process.wait(300)
        assert struck()
    # The source is another one by now: what was recorded is what rows meet.
    (tmp_path / "kept.csv").write_text((tmp_path / "users.csv").read_text())
    (tmp_path / "users.csv").write_text("id,name,country\n1,nobody,de\n")
    site.click(10, version=site.version if lasts else site.version - 1)
    with Started(*run, folder=tmp_path):
        site.check()
        (tmp_path / "kept.csv").rename(tmp_path / "users.csv")
        ask(state, "REFRESH TABLE users", timeout=60)
        site.base += timedelta(seconds=60)
        site.click(10)
        site.check()
