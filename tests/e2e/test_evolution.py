"""Another file on a kept checkpoint, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.commands import millrace

STREAM = """CREATE STREAM s (n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'in');
"""
COUNTED = "CREATE QUERY q AS SELECT window_end, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts]"
RUN = ("run", "queries.sql", "--on", "local", "--checkpoint", "state")


def given(folder: Path, sql: str, number: int, *seconds: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "queries.sql").write_text(STREAM + sql)
    lines = [f"{second},2024-01-01 00:00:{second:02}" for second in seconds]
    (folder / "in" / f"{number}.csv").write_text("\n".join(["n,ts", *lines]) + "\n")


@pytest.mark.slow
def test_a_dry_run_says_what_a_run_does(tmp_path: Path) -> None:
    given(tmp_path, f"{COUNTED};", 1, 1, 4)
    new = millrace(*RUN, "--dry-run", folder=tmp_path)
    assert "q started" in new.stdout and "from the beginning of its streams" in new.stdout
    assert not (tmp_path / "state").exists()
    assert millrace(*RUN, "--available-now", folder=tmp_path).returncode == 0
    assert millrace(*RUN, "--dry-run", folder=tmp_path).stdout == "nothing would change\n"

    given(tmp_path, f"{COUNTED} HAVING count(*) > 2; CREATE QUERY p AS SELECT n FROM s;", 2, 6, 12)
    found = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    dry = millrace(*RUN, "--dry-run", folder=tmp_path)
    data = json.loads(millrace(*RUN, "--dry-run", "--json", folder=tmp_path).stdout)["evolution"]
    assert {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()} == found
    assert [(each["query"], each["became"]) for each in data["queries"]] == [("q", "changed"), ("p", "started")]
    assert data["queries"][1]["starts_at"] == "2024-01-01 00:00:04.000001"

    done = millrace(*RUN, "--available-now", folder=tmp_path)
    assert done.returncode == 0
    assert dry.stdout in done.stderr
    assert "\t3\n" in done.stdout, "the window that was open has all its rows"


@pytest.mark.slow
def test_another_disorder_keeps_the_open_window_and_the_bound(tmp_path: Path) -> None:
    given(tmp_path, f"{COUNTED};", 1, 1, 12)
    assert millrace(*RUN, "--available-now", folder=tmp_path).stdout.endswith("\t1\n")
    given(tmp_path, f"{COUNTED};", 2, 9, 16, 13, 26)
    script = tmp_path / "queries.sql"
    script.write_text(script.read_text().replace("ORDERED", "DISORDER INTERVAL 5 SECONDS"))
    dry = millrace(*RUN, "--dry-run", folder=tmp_path).stdout
    assert dry == (
        "q kept\nstream s altered: ordered becomes disorder 5 SECONDS; "
        "its bound is 2024-01-01 00:00:12 and does not go back\n"
    )
    done = millrace(*RUN, "--available-now", folder=tmp_path)
    assert dry in done.stderr and "1 late" in done.stderr, "the row at 9 seconds"
    assert done.stdout.endswith("\t3\n"), "12, 16 and 13"


@pytest.mark.slow
def test_a_file_that_cannot_go_on_is_refused_with_the_reason(tmp_path: Path) -> None:
    given(tmp_path, f"{COUNTED};", 1, 1, 4)
    millrace(*RUN, "--available-now", folder=tmp_path)
    text = (tmp_path / "queries.sql").read_text()
    (tmp_path / "queries.sql").write_text(text.replace("ORDERED", "ORDERED PARTITIONED BY (n)"))
    for more in ("--dry-run", "--available-now"):
        refused = millrace(*RUN, more, folder=tmp_path)
        assert refused.returncode == 2
        assert (
            'stream "s" cannot go on: it was without PARTITIONED BY and would be PARTITIONED BY (n)' in refused.stderr
        )


@pytest.mark.slow
def test_a_dry_run_needs_a_checkpoint(tmp_path: Path) -> None:
    given(tmp_path, f"{COUNTED};", 1, 1, 4)
    refused = millrace("run", "queries.sql", "--on", "local", "--dry-run", folder=tmp_path)
    assert (refused.returncode, "--checkpoint" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_dry_run_refuses_the_sinks_that_a_run_refuses(tmp_path: Path) -> None:
    given(
        tmp_path, f"CREATE SINK out TO csv OPTIONS (path 'out'); {COUNTED.replace('q AS', 'q INTO out AS')};", 1, 1, 14
    )
    assert millrace(*RUN, "--until-end", folder=tmp_path).returncode == 0
    text = (tmp_path / "queries.sql").read_text()
    assert millrace(*RUN, "--dry-run", folder=tmp_path).stdout == "nothing would change\n", "its own folder is its own"
    (tmp_path / "queries.sql").write_text(text.replace("QUERY q", "QUERY p").replace("count(*)", "count(n)"))
    for more in ("--dry-run", "--available-now"):
        refused = millrace(*RUN, more, folder=tmp_path)
        assert refused.returncode == 2 and "folder" in refused.stderr, more
    refused = millrace(*RUN[:-1], "another", "--dry-run", folder=tmp_path)
    assert refused.returncode == 2 and "holds results of another run" in refused.stderr
    assert not (tmp_path / "another").exists()
