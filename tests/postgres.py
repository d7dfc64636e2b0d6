"""A PostgreSQL server of a test's own, on a socket in a temporary folder, from the binaries of `pgserver`."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest

_PATIENCE = 240.0
_SERVERS: dict[Path, subprocess.Popen[bytes]] = {}
"""The servers that run, by the folders of their data."""
_SETTINGS = ("listen_addresses=", "fsync=off", "max_connections=20", "shared_buffers=16MB")


@contextmanager
def server() -> Iterator[str]:
    """The connection string of a running server; skips, with the reason, where none can run."""
    psycopg: Any = pytest.importorskip("psycopg")
    binaries = _binaries()
    with TemporaryDirectory(prefix="millrace-pg-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        # The folder of the server is its user's own, and this one lets that user through.
        home.chmod(0o755)
        data = home / "data"
        data.mkdir()
        user = _unprivileged()
        if user:
            os.chown(data, user["user"], user["group"])
        _make_cluster(binaries, data, user)
        dsn = f"host={data} user=postgres dbname=postgres"
        _SERVERS[data] = _started(binaries, data, user)
        try:
            _wait(_SERVERS[data], psycopg, dsn)
            yield dsn
        finally:
            _stop(data)


@contextmanager
def outage(dsn: str) -> Iterator[None]:
    """A time in which a server is down; then it goes on with its data."""
    import psycopg

    data = Path(dsn.split()[0].removeprefix("host="))
    _stop(data)
    yield
    _SERVERS[data] = _started(_binaries(), data, _unprivileged())
    _wait(_SERVERS[data], psycopg, dsn)


def _stop(data: Path) -> None:
    process = _SERVERS.pop(data)
    process.send_signal(signal.SIGINT)
    process.wait(_PATIENCE)


def database(dsn: str, name: str) -> str:
    """The connection string of a new database of a server."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return dsn.replace("dbname=postgres", f"dbname={name}")


def fetched(dsn: str, query: str) -> list[tuple[Any, ...]]:
    """The rows that a query gives."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()


def _skip(reason: object) -> NoReturn:
    """Leave out a test that needs a server, and say when it runs."""
    pytest.skip(f"PostgreSQL cannot start: {reason}; runs where pgserver is installed and a user may start its server")


def _binaries() -> Path:
    # Its own way to start a server adds a user and opens folders to all, where root calls it.
    found = find_spec("pgserver")
    if found is None or found.origin is None:
        _skip("the package pgserver is not installed; it has no wheels for this Python or machine")
    return Path(found.origin).parent / "pginstall" / "bin"


def _unprivileged() -> dict[str, Any]:
    """Who runs the server, as a process is told: PostgreSQL refuses to be run by root."""
    if os.geteuid():
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    except KeyError:
        _skip('it refuses root, and there is no user "nobody"')


def _make_cluster(binaries: Path, data: Path, user: dict[str, Any]) -> None:
    command = [binaries / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync"]
    try:
        made = subprocess.run(command, cwd=data, capture_output=True, text=True, timeout=_PATIENCE, **user)
    except OSError as error:
        _skip(error)
    if made.returncode:
        _skip(made.stderr.strip())


def _started(binaries: Path, data: Path, user: dict[str, Any]) -> subprocess.Popen[bytes]:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    with (data.parent / "log").open("wb") as log:
        command = [binaries / "postgres", "-D", data, "-k", data, *settings]
        # A group of its own: Ctrl-C ends it with the tests, and not before.
        return subprocess.Popen(command, cwd=data, stdout=log, stderr=log, start_new_session=True, **user)


def _wait(process: subprocess.Popen[bytes], psycopg: Any, dsn: str) -> None:
    """Return when the server answers."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > until:
                _skip(error)
            time.sleep(0.05)
