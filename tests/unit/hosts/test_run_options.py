"""An option of a run that its host does not have is refused, in Python and on the command line alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.errors import RequestError
from millrace.hosts.run_options import HostName, RunOptions
from tests.e2e.commands import millrace

SCRIPT = """CREATE STREAM s (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
CREATE QUERY q AS SELECT k FROM s;
"""
OF_SPARK: list[tuple[dict[str, Any], list[str]]] = [
    ({"master": "local[2]"}, ["--master", "local[2]"]),
    ({"trigger": "1 second"}, ["--trigger", "1 second"]),
    ({"settings": {"spark.driver.memory": "2g"}}, ["--set", "spark.driver.memory=2g"]),
    ({"profile": True}, ["--profile"]),
    ({"verbose": True}, ["--verbose"]),
]


@pytest.mark.parametrize("host", ["local", "virtual"])
@pytest.mark.parametrize(("given", "flags"), OF_SPARK, ids=lambda each: next(iter(each)))
def test_an_option_of_spark_is_refused_on_another_host(
    host: HostName, given: dict[str, Any], flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "q.sql").write_text(SCRIPT)
    said = f'"{next(iter(given))}" works only on Spark'
    with pytest.raises(RequestError, match=said) as refused:
        mr.Network().sql(SCRIPT).run(on=host, until="end", **given)
    assert refused.value.hint == f"Run it --on spark, or leave out {flags[0]}."
    ran = millrace("run", "q.sql", "--on", host, "--until-end", *flags, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "") and said in ran.stderr
    assert RunOptions("spark", **given)


@pytest.mark.parametrize("host", ["local", "spark"])
def test_what_an_operator_costs_is_said_of_virtual_time_alone(host: HostName, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(SCRIPT)
    with pytest.raises(RequestError, match='"cost" works only in virtual time'):
        mr.Network().sql(SCRIPT).run(on=host, until="end", cost="1 ms")
    ran = millrace("run", "q.sql", "--on", host, "--until-end", "--cost", "1 ms", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "") and "leave out --cost" in ran.stderr
    assert RunOptions("virtual", cost=1_000)
