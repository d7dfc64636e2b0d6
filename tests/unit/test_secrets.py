"""Secrets are references: looked up when a connector is opened, and never stored or shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace import errors
from millrace.errors import MillraceError, QueryError, RequestError
from millrace.language import parse_network
from millrace.language.grammar.script_parser import parse_script
from millrace.secrets import masked, plain_secret, resolved
from tests.e2e.commands import millrace

SECRET = "hunter2-swordfish"
STREAM = "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'in.csv');\n"


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_hidden", set())


class NotedWriter:
    """Notes what it was opened with, and fails with it if it is told to."""

    opened: list[dict[str, str]] = []

    def __init__(self, options: dict[str, str], schema: pa.Schema, query: str) -> None:
        self.opened.append(options)
        self.options = options

    def write(self, epoch: int, batches: Any) -> None:
        if self.options.get("fails"):
            raise ValueError(f"login failed for {self.options['password']}")

    def close(self) -> None:
        pass


def test_a_reference_stands_for_a_variable_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_PASSWORD", SECRET)
    (tmp_path / "pg").write_text("open-sesame\n")
    options = {
        "url": "jdbc:x://h?password=${env:PG_PASSWORD}",
        "password": f"${{file:{tmp_path / 'pg'}}}",
        "user": "me",
    }
    found = resolved(options, 'sink "o"')
    assert found == {"url": f"jdbc:x://h?password={SECRET}", "password": "open-sesame", "user": "me"}
    assert SECRET not in str(RequestError(f"no {SECRET} here")), "it is hidden in errors from then on"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${env:NO_SUCH}", 'the option "password" of sink "o" names the variable "NO_SUCH"'),
        ("${file:/no/such}", 'names the file "/no/such", which cannot be read: No such file'),
        ("${vault:x}", "neither env nor file"),
    ],
)
def test_a_reference_to_nothing_is_refused(reference: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        resolved({"password": reference}, 'sink "o"')


@pytest.mark.parametrize(
    "name", ["password", "kafka.sasl.jaas.config", "client_secret", "api.key", "accessToken", "ssl_key_pem"]
)
def test_a_secret_in_plain_is_refused_and_not_quoted(name: str) -> None:
    text = f"{STREAM}CREATE SINK o TO jdbc OPTIONS (user 'me', {name} '{SECRET}');"
    with pytest.raises(QueryError, match="is a secret, and is written in plain") as refused:
        parse_network(text)
    assert SECRET not in str(refused.value) and "${env:NAME}" in str(refused.value)


def test_what_is_no_secret_stays_as_it_is() -> None:
    for name, value in (
        ("url", "jdbc:postgresql://localhost:5432/db"),
        ("kafka.bootstrap.servers", "a:9092,b:9092"),
        ("tokenizer", "x"),
        ("password", "${env:X}"),
        ("kafka.sasl.jaas.config", 'Login required password="${env:X}";'),
    ):
        assert plain_secret(name, value) is None
    assert plain_secret("url", "jdbc:postgresql://me:pw@localhost:5432/db") is not None
    assert masked("SELECT token AS t, password FROM s") == "SELECT token AS t, password FROM s"


@pytest.mark.parametrize(
    "options",
    [
        f"(password '{SECRET}' user)",
        f"(password = '{SECRET}',,)",
        f"(url 'x' password '{SECRET}'",
        f"(password {SECRET} ! )",
        f"(password '{SECRET}",
        f'(user "password" "{SECRET}" x',
        f"(`password` '{SECRET}'') x",
        f"(url 'jdbc:postgresql://u:{SECRET}@h/db' x",
    ],
)
def test_a_syntax_error_beside_a_secret_does_not_quote_it(options: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_script(f"CREATE SINK o TO jdbc OPTIONS {options};")
    assert SECRET not in str(refused.value)


def python_sink(more: str = "") -> str:
    writer = f"{NotedWriter.__module__}:{NotedWriter.__qualname__}"
    return (
        f"{STREAM}CREATE SINK o TO python OPTIONS (writer '{writer}', password '${{env:PG_PASSWORD}}'{more});\n"
        "CREATE QUERY q INTO o AS SELECT a FROM s;"
    )


def test_a_writer_gets_the_secret_and_no_file_of_the_checkpoint_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PG_PASSWORD", SECRET)
    Path("in.csv").write_text("a,ts\n1,2026-01-01 00:00:00\n")
    NotedWriter.opened.clear()
    network = mr.Network()
    network.sql(python_sink())
    network.run(on="local", until="end", checkpoint="state")
    assert [each["password"] for each in NotedWriter.opened] == [SECRET]
    for path in Path("state").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path
    assert stat.S_IMODE(Path("state").stat().st_mode) == 0o700
    assert SECRET not in network.explain()


def test_an_error_of_a_writer_does_not_show_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PG_PASSWORD", SECRET)
    Path("in.csv").write_text("a,ts\n1,2026-01-01 00:00:00\n")
    network = mr.Network()
    network.sql(python_sink(", fails 'yes'"))
    with pytest.raises(MillraceError, match="login failed for") as raised:
        network.run(on="local", until="end")
    assert SECRET not in str(raised.value) and SECRET not in json.dumps(raised.value.fact)


def test_check_says_which_variable_is_missing(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,ts\n1,2026-01-01 00:00:00\n")
    (tmp_path / "q.sql").write_text(
        f"{STREAM}CREATE SINK o TO jdbc OPTIONS (password '${{env:MILLRACE_NO_SUCH}}');\n"
        "CREATE QUERY q INTO o AS SELECT a FROM s;"
    )
    found = millrace("check", "q.sql", folder=tmp_path)
    assert found.returncode == 2 and 'names the variable "MILLRACE_NO_SUCH"' in found.stderr


def test_a_checkpoint_that_the_command_line_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,ts\n1,2026-01-01 00:00:00\n")
    (tmp_path / "q.sql").write_text(f"{STREAM}SELECT a FROM s;")
    found = millrace("run", "q.sql", "--on", "local", "--until-end", "--checkpoint", "new/state", folder=tmp_path)
    assert (found.returncode, stat.S_IMODE((tmp_path / "new" / "state").stat().st_mode)) == (0, 0o700)
