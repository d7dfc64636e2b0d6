"""Long scripts: the work of checking one grows as the script does, and conditions may have any number of parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from millrace.errors import QueryError
from millrace.hosts.sinks.sinks import file_sinks
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.language import parse_network
from millrace.language.script import bind_expression
from millrace.plan.physical.stages import physical

_STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'in.csv');\n"
_STREAMS = _STREAM.replace("STREAM s", "STREAM s{0}")
_WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]"


def _many(text: str, count: int, between: str = ", ") -> str:
    return between.join(text.format(number) for number in range(count))


SCRIPTS: dict[str, Callable[[int], str]] = {
    "computed columns": lambda count: f"SELECT ts, {_many('a + {0} AS c{0}', count)} FROM s",
    "aggregates": lambda count: f"SELECT {_many('sum(a + {0}) AS c{0}', count)} FROM s {_WINDOW}",
    "groups": lambda count: (
        f"SELECT {_many('a + {0} AS c{0}', count)}, count(*) AS n FROM s {_WINDOW} GROUP BY {_many('c{0}', count)}"
    ),
    "conditions": lambda count: f"SELECT ts FROM s WHERE {_many('a <> {0}', count, ' AND ')}",
    "queries": lambda count: _many("CREATE QUERY q{0} AS SELECT ts, a FROM s WHERE b > {0}", count, ";\n"),
    "UNION ALL": lambda count: _many("SELECT ts, a FROM s WHERE b = {0}", count, " UNION ALL "),
    "UNION ALL of streams": lambda count: (
        _many(_STREAMS, count, "") + _many("SELECT ts, a FROM s{0}", count, " UNION ALL ")
    ),
    "streams": lambda count: _many(_STREAMS + "CREATE QUERY q{0} AS SELECT ts, a FROM s{0};\n", count, ""),
    "sinks": lambda count: _many(
        "CREATE SINK k{0} TO csv OPTIONS (path 'out{0}');\nCREATE QUERY q{0} INTO k{0} AS SELECT ts FROM s",
        count,
        ";\n",
    ),
}


def _work(script: str) -> int:
    """How many functions are called to check a script, and resumptions of generators."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        network = parse_network(script)
        plan = physical(network)
        plan.whole()
        for stream in network.streams():
            plan.columns_read(stream.name)
        file_sinks(network.queries)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCRIPTS)
def test_twice_as_long_a_script_takes_twice_the_work(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _work(_STREAM + SCRIPTS[kind](3))  # what is done once for all scripts
    short, double, fourfold = (_work(_STREAM + SCRIPTS[kind](count)) for count in (25, 50, 100))
    assert fourfold - double < 2.3 * (double - short)


@pytest.mark.parametrize(("word", "kept"), [("AND", []), ("OR", [7])])
def test_a_condition_may_have_thousands_of_parts(word: str, kept: list[int]) -> None:
    sign = "<>" if word == "AND" else "="
    condition = bind_expression(_many(f"a {sign} {{0}}", 1_000, f" {word} "), pa.schema([("a", pa.int32())]))
    rows = pa.record_batch([pa.array([7, -1, None], pa.int32())], names=["a"])
    assert rows.filter(condition.over(rows)).column("a").to_pylist() == (kept or [-1])
    assert isinstance(condition, Call) and len(condition.arguments) == 1_000
    assert str(condition).startswith("((") and repr(condition).count("Call(") == 1_999


def _nested(function: str, conditions: list[Expression]) -> str:
    """The text of nested calls of two arguments each."""
    text = repr(conditions[0])
    for each in conditions[1:]:
        text = f"Call(function={function!r}, arguments=({text}, {each!r}))"
    return text


def test_the_text_of_a_flat_condition_is_that_of_nested_ones_so_that_operators_keep_their_names() -> None:
    a, b, c, d = (Column(name) for name in "abcd")
    flat = Call("and", (Call("and", (Call("and", (a, b)), c)), d))
    assert flat == Call("and", (a, b, c, d))
    assert repr(flat) == _nested("and", [a, b, c, d])
    assert str(flat) == "(((a AND b) AND c) AND d)"
    grouped = Call("and", (a, Call("and", (b, c))))
    assert grouped != Call("and", (a, b, c)) and repr(grouped) == _nested("and", [a, Call("and", (b, c))])


def test_a_group_key_is_found_inside_a_longer_condition() -> None:
    network = parse_network(
        _STREAM + f"SELECT window, a > 1 AND b > 1 AND count(*) > 1 AS c FROM s {_WINDOW} GROUP BY a > 1 AND b > 1"
    )
    assert network.queries[0].root.column_names() == ["window_start", "window_end", "c"]


def test_what_is_nested_too_deeply_is_refused_wherever_it_is_noticed() -> None:
    for count in (160, 1_000):
        with pytest.raises(QueryError, match="nested too deeply"):
            physical(parse_network(f"{_STREAM}SELECT ts, {_many('a', count, ' + ')} AS c FROM s")).whole()
