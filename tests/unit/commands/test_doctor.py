from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from millrace.commands import doctor
from millrace.language import parse_network


def by_name(checks: list[doctor.Check]) -> dict[str, doctor.Check]:
    return {check.name: check for check in checks}


def test_every_need_is_checked_and_this_machine_meets_those_of_python() -> None:
    checks = by_name(doctor.report())
    assert {"python", "java", "pyspark", "pyarrow", "pandas", "sqlglot", "free disk"} <= checks.keys()
    for name in ("python", "pyarrow", "temporary folder", "connector csv", "connector json", "connector parquet"):
        assert checks[name].ok, checks[name]


def test_a_missing_java_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/folder")
    java = by_name(doctor.report())["java"]
    assert not java.ok
    assert "17" in java.hint


def test_a_java_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 0, stdout="", stderr='openjdk version "11.0.2" 2019-01-15')
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: answer)
    assert not by_name(doctor.report())["java"].ok


def test_a_package_outside_its_bounds_is_refused() -> None:
    assert doctor._package("pyarrow", (1,), (999,)).ok
    assert not doctor._package("pyarrow", (999,), (1000,)).ok
    assert doctor._package("no-such-package", (1,), (2,)).found == "not installed"


def test_a_failed_attempt_is_reported_and_not_raised() -> None:
    check = doctor._attempt("thing", lambda: str(1 // 0), "Do not divide by zero.")
    assert (check.ok, check.hint) == (False, "Do not divide by zero.")


def test_the_text_shows_hints_of_failed_checks_alone() -> None:
    text = doctor.render([doctor.Check("a", True, "1", "Unseen."), doctor.Check("b", False, "none", "Seen.")])
    assert "Unseen." not in text
    assert "hint: Seen." in text


_FILE = """
CREATE STREAM s (n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  FROM kafka OPTIONS (bootstrap_servers 'x:1', topic 't', format 'avro');
CREATE SINK o TO postgres OPTIONS (dsn 'x');
CREATE QUERY q INTO o AS SELECT n FROM s;
"""


def test_a_file_is_told_which_extras_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    network = parse_network(_FILE)
    assert all(each.ok for each in doctor.extras_of(network))

    def none_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", none_installed)
    checks = by_name(doctor.extras_of(network))
    assert checks["extra kafka"].found == 'confluent-kafka is not installed, and stream "s" needs it'
    assert checks["extra kafka"].hint == "Install it with pip install 'millrace[kafka]'."
    assert checks["extra avro"].found == 'fastavro is not installed, and stream "s" needs it'
    assert checks["extra postgres"].found == 'psycopg is not installed, and sink "o" needs it'
    assert doctor.extras_of(parse_network("CREATE STREAM s (n INT) LATENT TIMESTAMP FROM csv; SELECT n FROM s;")) == []


@pytest.mark.slow
def test_the_doctor_does_not_import_spark() -> None:
    code = "import sys, millrace.commands.doctor; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark_session")
def test_a_deep_report_counts_on_spark() -> None:
    session = by_name(doctor.report(deep=True))["spark session"]
    assert session.ok, session
