"""Functions of the user's own on every host: in SELECT, WHERE, GROUP BY, joins and aggregates."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import MillraceError, RequestError, RunError
from millrace.testing.hosts import Host
from tests.unit.kernel import user_functions as written

PLACE = "tests.unit.kernel.user_functions"
SQL = f"""
CREATE STREAM s (k STRING, x DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE STREAM t (j STRING, y DOUBLE, at TIMESTAMP) TIMESTAMP BY at ORDERED FROM iterable;
CREATE FUNCTION price(DOUBLE, STRING) RETURNS DOUBLE LANGUAGE PYTHON AS '{PLACE}:price';
CREATE FUNCTION prices(DOUBLE, STRING) RETURNS DOUBLE LANGUAGE PYTHON AS '{PLACE}:columns_price';
CREATE FUNCTION tax(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS '{PLACE}:Shop.tax';
CREATE QUERY selected AS SELECT k, price(x, k) AS p, prices(x, k) AS q FROM s;
CREATE QUERY chosen AS SELECT k FROM s WHERE price(x, k) > 3 AND k <> 'none';
CREATE QUERY grouped AS
  SELECT price(x, 'ab') AS p, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY price(x, 'ab');
CREATE QUERY summed AS SELECT k, sum(prices(x, k)) AS total FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k;
CREATE QUERY joined AS
  SELECT s.k, s.x, t.y FROM s JOIN t ON s.k = t.j AND tax(s.x) < t.y WINDOW 1 MINUTE;
CREATE QUERY large AS
  SELECT k, sum(x) AS total FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k HAVING tax(sum(x)) >= 0.5;
"""
TIMESTAMP = pa.timestamp("us", tz="UTC")


def times(*seconds: int) -> pa.Array:
    return pa.array([each * 1_000_000 for each in seconds], pa.int64()).cast(TIMESTAMP)


INPUTS = {
    "s": pa.table({"k": ["a", "bb", "bb", "bb"], "x": [1.0, 2.0, None, 1.0], "ts": times(1, 2, 3, 61)}),
    "t": pa.table({"j": ["a", "bb"], "y": [0.5, 0.4], "at": times(2, 3)}),
}


def tuples(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


def test_every_host_calls_functions_wherever_they_stand(host: Host) -> None:
    found = host.run(SQL, INPUTS)
    assert tuples(found["selected"], "k", "p", "q") == [
        ("a", 1.0, 1.0), ("bb", 2.0, 2.0), ("bb", 4.0, 4.0), ("bb", None, None)
    ]  # fmt: skip
    assert tuples(found["chosen"], "k") == [("bb",)]
    assert tuples(found["grouped"], "p", "n") == [(2.0, 1), (2.0, 1), (4.0, 1), (None, 1)]
    assert tuples(found["summed"], "k", "total") == [("a", 1.0), ("bb", 2.0), ("bb", 4.0)]
    assert tuples(found["joined"], "k", "x", "y") == [("a", 1.0, 0.5), ("bb", 1.0, 0.4)]
    assert tuples(found["large"], "k", "total") == [("bb", 2.0)]


FAILING = f"""
CREATE STREAM s (x DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE FUNCTION positive(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS '{PLACE}:positive';
CREATE QUERY q AS SELECT positive(x) AS p FROM s;
"""


def test_a_failure_ends_the_run_with_the_arguments(host: Host) -> None:
    with pytest.raises(MillraceError) as caught:
        host.run(FAILING, {"s": pa.table({"x": [1.0, -2.0], "ts": times(1, 2)})})
    assert 'function "positive" failed for (-2.0): ValueError: it must be positive' in str(caught.value)


ROWS = [{"x": 2.0, "ts": 1_000_000}, {"x": 4.0, "ts": 2_000_000}]


def network() -> mr.Network:
    net = mr.Network()
    net.stream("s", "x DOUBLE, ts TIMESTAMP", time="ts", source=[ROWS])
    return net


def test_a_function_of_python_is_given_to_a_network() -> None:
    net = network().function("tax", written.Shop.tax, takes="DOUBLE", returns="DOUBLE")
    net.function("prices", written.columns_price, takes=["DOUBLE", "STRING"], returns="DOUBLE")
    net.sql("CREATE QUERY q AS SELECT tax(x) AS t, prices(x, 'ab') AS p FROM s")
    assert net.run(on="local", until="end").results("q").to_pylist() == [{"t": 0.5, "p": 4.0}, {"t": 1.0, "p": 8.0}]


def test_a_relation_calls_functions_too() -> None:
    net = mr.Network().function("tax", f"{PLACE}:Shop.tax", takes="DOUBLE", returns="DOUBLE")
    s = net.stream("s", "x DOUBLE, ts TIMESTAMP", time="ts", source=[ROWS])
    net.query("q", s.where("tax(x) > 0.5").select(t="tax(x)"))
    assert net.run(on="local", until="end").results("q").to_pylist() == [{"t": 1.0}]


@pytest.mark.parametrize("given", [lambda value: value, 5, [].append], ids=["lambda", "number", "method"])
def test_a_function_that_others_cannot_import_is_refused(given: Any) -> None:
    with pytest.raises(RequestError, match="is no function that other processes can import") as caught:
        network().function("f", given, takes="DOUBLE", returns="DOUBLE")
    assert "package.module:function" in caught.value.hint


def test_what_a_function_gives_must_be_of_its_type() -> None:
    net = network().function("f", written.echo, takes="DOUBLE", returns="STRING")
    net.sql("CREATE QUERY q AS SELECT f(x) AS y FROM s")
    with pytest.raises(RunError, match=r'function "f" returns STRING, but gave 2\.0 for \(2\.0\)'):
        net.run(on="local", until="end")
