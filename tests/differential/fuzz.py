"""Random valid expressions over all functions of the table, here and in Spark.

    python -m tests.differential.fuzz --cases 2000 --seed 1
    python -m tests.differential.fuzz --malformed 2000 --seed 1

print what differs, and which malformed expressions are neither accepted nor refused with a hint at their place.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.errors import MillraceError
from millrace.kernel.columns.sql_types import sql_name
from millrace.language import bind_expression
from millrace.language.expressions.functions import FUNCTIONS
from tests.differential.malformed_expressions import Malformed
from tests.differential.random_expressions import ROWS, Expressions, given_rows


@dataclass
class Outcome:
    """What a comparison found."""

    compared: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    refused_by_spark: list[str] = field(default_factory=list)
    failed_here: list[str] = field(default_factory=list)
    failed_there: list[str] = field(default_factory=list)
    """What has a value here alone."""
    without_value: list[str] = field(default_factory=list)
    """What is null for all rows, so that little was compared; these are among the compared ones."""


_FRACTION = re.compile(r"-?\d+\.\d{8,}(E-?\d+)?")
_FIRST, _LAST = -719_162, 2_932_896
"""The first day of the year 1 and the last one of 9999, since 1970."""
NAMES = ("compared", "unlike", "refused_by_spark", "failed_here", "failed_there", "without_value")
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Our yardstick; and Spark compiles no code for a few rows."""


def compare(session: Any, rows: pa.RecordBatch, texts: Sequence[str]) -> Outcome:
    """Expressions over rows here and in Spark."""
    found = Outcome()
    before = {name: session.conf.get(name) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        session.createDataFrame(pa.Table.from_batches([rows])).createOrReplaceTempView("given")
        for text, theirs in _spark_columns(session, list(texts), found):
            if theirs is None:
                _try_alone(rows, text, found)
            else:
                _compare_one(rows, text, theirs, found)
    finally:
        for name, value in before.items():
            session.conf.set(name, value)
    return found


def _spark_columns(session: Any, texts: list[str], found: Outcome) -> Iterator[tuple[str, pa.ChunkedArray | None]]:
    """The columns that Spark gives, None for what fails there, found by halves; what it refuses is left out."""
    selected = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    # One of the expressions is why, whatever Spark raises.
    try:
        yield from zip(texts, session.sql(f"SELECT {selected} FROM given").toArrow().columns, strict=True)
    except Exception:
        known = [text for text in texts if _is_known(session, text, found)]
        if len(known) < len(texts):
            yield from _spark_columns(session, known, found)
        elif len(texts) == 1:
            yield texts[0], None
        else:
            yield from _spark_columns(session, texts[: len(texts) // 2], found)
            yield from _spark_columns(session, texts[len(texts) // 2 :], found)


def _is_known(session: Any, text: str, found: Outcome) -> bool:
    """True if Spark accepts an expression."""
    # Whatever Spark raises is its answer.
    try:
        session.sql(f"SELECT {text} FROM given")
    except Exception as error:
        found.refused_by_spark.append(f"{text}: {str(error).splitlines()[0][:160]}")
        return False
    return True


def _try_alone(rows: pa.RecordBatch, text: str, found: Outcome) -> None:
    """See that what fails in Spark fails here too."""
    try:
        bind_expression(text, rows.schema).over(rows)
    except (MillraceError, pa.ArrowException):
        found.refused_by_spark.append(f"{text}: fails, here too")
    else:
        found.failed_there.append(text)


def _compare_one(rows: pa.RecordBatch, text: str, theirs: pa.ChunkedArray, found: Outcome) -> None:
    try:
        ours = bind_expression(text, rows.schema).over(rows)
    except (MillraceError, pa.ArrowException) as error:
        # Overflow fails a run here, and wraps around in Spark.
        found.failed_here.append(f"{text}: {error}")
        return
    found.compared.append(text)
    if ours.null_count == len(ours):
        found.without_value.append(text)
    pairs = zip(values(ours), values(theirs), range(len(ours)), strict=True)
    wrong = [(one, other, row) for one, other, row in pairs if not alike(one, other)]
    if wrong or family(ours.type) != family(theirs.type):
        one, other, row = wrong[0] if wrong else (None, None, 0)
        read = {name: rows.column(name)[row].as_py() for name in set(bind_expression(text, rows.schema).columns())}
        types = "" if ours.type == theirs.type else f" ({sql_name(ours.type)}, Spark {sql_name(theirs.type)})"
        found.unlike.append(f"{text}{types}: here {one!r}, Spark {other!r}, {len(wrong)} rows, one is {read}")


def family(kind: pa.DataType) -> str:
    """The name of a type; integers are alike however wide they are."""
    return re.sub(r"\b(TINYINT|SMALLINT|INT)\b", "BIGINT", sql_name(kind))


def values(column: Any) -> list[Any]:
    """The values of a column; times and dates as numbers, for Python has not all of them."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
        # Spark has times before the year 1 and beyond 9999, for which we have null.
        size = 86_400_000_000 if pa.types.is_timestamp(kind) else 1
        return [each if each is None or _FIRST <= each // size <= _LAST else None for each in column.to_pylist()]
    if pa.types.is_string(kind):
        # Spark keeps bytes that are no UTF-8, we have U+FFFD for them.
        return [
            each if each is None else each.decode(errors="replace") for each in column.cast(pa.binary()).to_pylist()
        ]
    found: list[Any] = column.to_pylist()
    return found


def alike(ours: Any, theirs: Any) -> bool:
    """True if two values are equal, fractions within 1e-9."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or abs(ours - theirs) <= 1e-9 * abs(theirs) or (ours != ours and theirs != theirs)
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs:
        # The last digit of a logarithm or an angle, as a text: Java's and C's libraries differ there.
        return bool(_FRACTION.fullmatch(ours) and _FRACTION.fullmatch(theirs)) and alike(float(ours), float(theirs))
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[each], theirs[each]) for each in ours)
    return bool(ours == theirs)


def main() -> int:
    """Compare as many expressions as asked for; 1 if some differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.fuzz")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--malformed", type=int, help="try malformed expressions instead, without Spark")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.malformed:
        return _try_malformed(options.seed, options.malformed)
    # Imported here: tests that only make expressions need no Spark.
    from millrace.hosts.spark.session.session import open_session

    rows = given_rows(options.seed)
    expressions = Expressions(options.seed, rows.schema)
    session = open_session("local[1]", log_file=Path(tempfile.mkdtemp()) / "spark.log")
    whole = Outcome()
    for start in range(0, options.cases, 100):
        texts = [expressions.next() for _ in range(min(100, options.cases - start))]
        found = compare(session, rows, texts)
        for name in NAMES:
            lines = getattr(found, name)
            getattr(whole, name).extend(lines)
            if lines and name not in ("compared", "without_value"):
                print(*(f"{name}: {line}" for line in lines), sep="\n", flush=True)
    session.stop()
    print(f"# {', '.join(f'{len(getattr(whole, name))} {name}' for name in NAMES)}")
    used = {name for text in whole.compared for name in FUNCTIONS if f"{name}(" in text}
    print(f"# compared {len(whole.compared)} expressions over {ROWS} rows, {len(used)} names of functions")
    print(f"# refused here most: {expressions.refused.most_common(12)}")
    return int(bool(whole.unlike))


def _try_malformed(seed: int, count: int) -> int:
    tried = Malformed(given_rows(seed))
    tried.try_many(seed, count)
    print(*tried.faults, sep="\n")
    print(f"# {count} malformed expressions, {len(tried.faults)} faults; {dict(tried.outcomes)}")
    return int(bool(tried.faults))


if __name__ == "__main__":
    sys.exit(main())
