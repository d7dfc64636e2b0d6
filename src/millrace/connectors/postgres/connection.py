"""Connections to PostgreSQL: which options make one, and what goes wrong with a server, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millrace.errors import RequestError, RunError

if TYPE_CHECKING:
    from psycopg import Connection, sql

CONNECTION_OPTIONS = (
    "dsn", "host", "port", "dbname", "user", "password", "passfile", "service", "sslmode", "sslrootcert", "sslcert",
    "sslkey", "connect_timeout", "application_name", "target_session_attrs", "options",
)  # fmt: skip
"""The options that say where a server is: a whole connection string, or the parts that libpq has names for."""


def driver() -> Any:
    """The package psycopg; says how to install it where it is not."""
    try:
        import psycopg
    except ImportError as error:
        raise RequestError(
            f"PostgreSQL needs the package psycopg, which cannot be imported: {error}",
            hint="Install it: pip install 'millrace[postgres]'.",
        ) from None
    return psycopg


def connect(options: Mapping[str, str]) -> Connection[tuple[Any, ...]]:
    """A connection in which each statement is its own transaction, unless one is begun."""
    psycopg = driver()
    parts = {"connect_timeout": "10", "application_name": "millrace"}
    parts |= {name: options[name] for name in CONNECTION_OPTIONS if name in options and name != "dsn"}
    if "dsn" in options:
        # What the string says itself counts.
        try:
            parts |= psycopg.conninfo.conninfo_to_dict(options["dsn"])
        except psycopg.ProgrammingError as error:
            raise RequestError(
                f"the dsn is no connection string: {error}", hint="Write dsn 'host=localhost dbname=shop user=me'."
            ) from None
    with faults():
        found: Connection[tuple[Any, ...]] = psycopg.connect(**parts, autocommit=True)
        return found


_AGAIN = (
    "Nothing of this epoch has been written. Mend the table, or the query, and start again on the same --checkpoint."
)


@contextmanager
def faults(hint: str = _AGAIN) -> Iterator[None]:
    """Raise what a server says as a `RunError`; the `hint` says what to do about what it refuses."""
    psycopg = driver()
    try:
        yield
    except psycopg.Error as error:
        raise fault(error, hint) from error


def fault(error: Any, hint: str = _AGAIN) -> RunError:
    """What a server says, or that it is not there, as an error."""
    told = getattr(error, "diag", None)
    lines = [told.message_primary, told.message_detail, told.context] if told is not None else []
    text = "; ".join(line.strip() for line in lines if line) or str(error).strip()
    if isinstance(error, driver().OperationalError):
        return RunError(
            f"PostgreSQL does not answer: {text}",
            hint="Start the server, or mend the connection options; then start again on the same --checkpoint: nothing "
            "is lost.",
        )
    if isinstance(error, driver().errors.InsufficientPrivilege):
        hint = "GRANT the right to the user of the connection, then start again on the same --checkpoint."
    return RunError(f"PostgreSQL refused: {text}", hint=hint)


def table_name(text: str) -> sql.Identifier:
    """The name of a table, with or without its schema, for a statement."""
    from psycopg import sql

    return sql.Identifier(*text.split("."))
