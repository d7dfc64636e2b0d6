from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millrace.errors import MillraceError, QueryError
from millrace.kernel.columns.scalar_functions import FUNCTIONS
from millrace.language import bind_expression
from millrace.language.expressions.functions import FUNCTIONS as DECLARED
from millrace.language.expressions.json_calls import JSON_CALLS

TIMESTAMP = pa.timestamp("us", tz="UTC")
NOON = dt.datetime(2024, 5, 1, 12, 30, 15, tzinfo=dt.UTC)
ROW = pa.RecordBatch.from_arrays(
    [
        pa.array([7], pa.int32()),
        pa.array([2.5], pa.float64()),
        pa.array(["ab"], pa.string()),
        pa.array([None], pa.string()),
        pa.array([True], pa.bool_()),
        pa.array([NOON], TIMESTAMP),
        pa.array([NOON.date()], pa.date32()),
    ],
    names=["n", "x", "Name", "gone", "flag", "ts", "day_of"],
)


def value(text: str) -> Any:
    return bind_expression(text, ROW.schema).over(ROW)[0].as_py()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 1", 8),
        ("n / 2", 3.5),
        ("n div 2", 3),
        ("n % 4", 3),
        ("-n", -7),
        ("+n", 7),
        ("N", 7),
        ("(n + 1) * 2", 16),
        ("n BETWEEN 5 AND 7.5", True),
        ("n NOT BETWEEN 5 AND 7", False),
        ("n IN (1, 7)", True),
        ("n NOT IN (1, 7)", False),
        ("n <> 7 OR flag", True),
        ("n != 7 AND flag", False),
        ("NOT flag", False),
        ("name LIKE 'a%'", True),
        ("name NOT LIKE 'a%'", False),
        ("name ILIKE 'A_'", True),
        ("name RLIKE '^a.$'", True),
        ("gone IS NULL", True),
        ("gone IS NOT NULL", False),
        ("gone <=> NULL", True),
        ("NULL <=> NULL", True),
        ("n <=> NULL", False),
        ("NULL = NULL", None),
        ("NULL IN (NULL)", None),
        ("NULL BETWEEN NULL AND NULL", None),
        ("NULL IS DISTINCT FROM NULL", False),
        ("gone IS DISTINCT FROM 'a'", True),
        ("flag IS TRUE", True),
        ("flag IS NOT TRUE", False),
        ("gone = 'a'", None),
        ("CASE WHEN n > 5 THEN 'big' WHEN n > 1 THEN 'some' ELSE 'none' END", "big"),
        ("CASE n WHEN 7 THEN 'seven' END", "seven"),
        ("CASE n WHEN 8 THEN 'eight' END", None),
        ("CAST(n AS STRING)", "7"),
        ("CAST('12' AS BIGINT)", 12),
        ("CAST('x' AS INT)", None),
        ("CAST('1.7' AS INT)", 1),
        ("CAST('yes' AS BOOLEAN)", True),
        ("CAST('-Infinity' AS DOUBLE)", -math.inf),
        ("CAST(ts AS STRING)", "2024-05-01 12:30:15"),
        ("CAST(1e10 AS STRING)", "1.0E10"),
        ("name || x", "ab2.5"),
        ("CAST('2024-02-30' AS DATE)", None),
        ("'2024-02-30'::DATE", None),
        ("CAST('soon' AS TIMESTAMP)", None),
        ("CAST('2024-02-29' AS DATE)", dt.date(2024, 2, 29)),
        ("n::double", 7.0),
        ("string(n)", "7"),
        ("name || '-' || n", "ab-7"),
        ("concat(name, n, 'c')", "ab7c"),
        ("COALESCE(gone, name)", "ab"),
        ("nvl(gone, 'z')", "z"),
        ("IF(n > 5, 1, 2.5)", 1.0),
        ("if(gone is null, 'a', 'b')", "a"),
        ("nvl2(gone, 1, 2)", 2),
        ("nullif(n, 7)", None),
        ("upper(name)", "AB"),
        ("lcase('AB')", "ab"),
        ("length(name)", 2),
        ("char_length(name)", 2),
        ("substring(name, 2, 1)", "b"),
        ("substr(name, 2)", "b"),
        ("substring(name FROM 1 FOR 1)", "a"),
        ("trim('  a ')", "a"),
        ("ltrim('  a ')", "a "),
        ("replace(name, 'a', 'c')", "cb"),
        ("startswith(name, 'a')", True),
        ("contains(name, 'z')", False),
        ("abs(-3)", 3),
        ("round(x)", 3.0),
        ("round(2.345, 2)", Decimal("2.35")),
        ("array(n, 2 * n)[1]", 14),
        ("array(n, 2 * n)[2]", None),
        ("map('k', struct(n AS a))['k'].a", 7),
        ("round(n, -1)", 10),
        ("round(n, 1)", 7),
        ("ln(0)", None),
        ("ln(n - 8)", None),
        ("floor(x)", 2),
        ("ceiling(x)", 3),
        ("pow(2, 3)", 8.0),
        ("mod(n, 4)", 3),
        ("1 | 6 & 3 ^ 5", 7),
        ("~n << 1", -16),
        ("name LIKE gone", None),
        ("name LIKE ALL ('a%', '%b')", True),
        ("name NOT LIKE ANY ('a%', 'x')", True),
        ("transform(array(n, 1), (a, i) -> a * i + x)", [2.5, 3.5]),
        ("transform(array(array(n), array(1, 2)), a -> transform(a, b -> b + size(a) + n))", [[15], [10, 11]]),
        ("aggregate(array(1, 2), n, (a, b) -> a + b, a -> a * x)", 25.0),
        ("filter(array(name, gone), a -> a IS NOT NULL)", ["ab"]),
        ("overlay(name PLACING 'xy' FROM 2)", "axy"),
        ("position('b' IN name)", 2),
        ("trim(BOTH 'b' FROM name)", "a"),
        ("extract(SECOND FROM ts)", Decimal("15.000000")),
        ("dateadd(MONTH, 10, ts)", NOON.replace(year=2025, month=3)),
        (
            "to_utc_timestamp(TIMESTAMP '2024-03-10 02:30:00', 'America/New_York')",
            dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC),
        ),
        (
            "to_utc_timestamp(TIMESTAMP '2024-11-03 01:30:00', 'America/New_York')",
            dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC),
        ),
        ("size(array())", 0),
        ("-2147483648 = try_add(-2147483648, 0)", True),
        ("try_add(-2147483648, -1)", None),
        ("least(n, 2.5, 9)", 2.5),
        ("greatest(n, 2)", 7),
        ("year(ts)", 2024),
        ("month(day_of)", 5),
        ("EXTRACT(HOUR FROM ts)", 12),
        ("date_part('minute', ts)", 30),
        ("unix_micros(ts)", int(NOON.timestamp()) * 1_000_000),
        ("date_trunc('HOUR', ts)", NOON.replace(minute=0, second=0)),
        ("ts + INTERVAL 45 SECONDS", NOON + dt.timedelta(seconds=45)),
        ("ts - INTERVAL '1' HOUR", NOON - dt.timedelta(hours=1)),
        ("ts + INTERVAL -1 HOUR", NOON - dt.timedelta(hours=1)),
        ("ts + INTERVAL '-1' HOUR", NOON - dt.timedelta(hours=1)),
        ("ts - INTERVAL - 90 MINUTES", NOON + dt.timedelta(minutes=90)),
        ("ts - INTERVAL '1 hour 30 minutes'", NOON - dt.timedelta(minutes=90)),
        ("ts - ts < INTERVAL 1 SECOND", True),
        ("ts > '2024-05-01 12:00:00'", True),
        ("'2024-05-01T12:00:00Z' > ts", False),
        ("ts = TIMESTAMP '2024-05-01 12:30:15'", True),
        ("day_of = DATE '2024-05-01'", True),
        ("ts >= day_of", True),
        ("date(ts)", NOON.date()),
        ("'it''s'", "it's"),
        ('"double"', "double"),
        ("`n`", 7),
        ("3000000000", 3_000_000_000),
        ("1.5e2", 150.0),
        ("TRUE", True),
        ("""'{"a": [{"b": 7}]}':a[0].b""", "7"),
        ("""'{"a": {"from": 7}}':a.from::INT + 1""", 8),
        ("DECIMAL '1.50'", Decimal("1.50")),
        ("NUMERIC '-0.5' + 1", Decimal("0.5")),
        ("DECIMAL(4, 1) '1.26'", Decimal("1.3")),
        ("CAST('1.50' AS DECIMAL)", Decimal(2)),
        ("timestamp_micros(4611686018427387904)", None),
        ("timestamp_seconds(253402300800)", None),
        ("timestamp_millis(-62135596800001)", None),
        ("unix_seconds(timestamp_seconds(253402300799))", 253_402_300_799),
        ("conv('-0', 10, -2)", "-0"),
        ("conv('-0', 10, 2)", "0"),
    ],
)
def test_an_expression_has_the_value_that_spark_gives_it(text: str, expected: object) -> None:
    assert value(text) == expected


def test_every_scalar_function_of_the_kernel_can_be_called() -> None:
    operators = {"+", "-", "*", "/", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "in", "case"}
    of_plans = {"canonical", "encoded", "decoded", "entries"}
    operators |= {"&", "|", "^", "~", "%"}
    of_several_types = {
        *("concat_arrays", "concat_bytes", "reverse_array", "reverse_text", "parse_date", "parse_timestamp"),
        *("parse_unix_seconds", "second_fraction", "year_of_week", "week"),
    }
    in_forms_of_their_own = of_several_types | {
        "field",
        "element",
        "of_key",
        "named_struct",
        "map",
        "json_part",
        "interval_part",
        *JSON_CALLS,
    }
    called = {each.function for each in DECLARED.values()}
    assert called | operators | of_plans | in_forms_of_their_own >= set(FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("m + 1", 'column "m" does not exist', "m"),
        ("n + name", "cannot be computed for INT, STRING", "n + name"),
        ("name = 5", "no common type", "name = 5"),
        ("ts > 'soon'", "'soon' is not a valid TIMESTAMP", "'soon'"),
        ("TIMESTAMP '2024-13-01'", "is not a valid TIMESTAMP", "'2024-13-01'"),
        ("DATE '2024-02-30'", "is not a valid DATE", "'2024-02-30'"),
        ("n = 'x'", "'x' is not a valid INT", "'x'"),
        ("upperr(name)", 'function "upperr" is unknown', "upperr(name)"),
        ("upper(name, name)", '"upper" takes 1 argument, not 2', "upper(name, name)"),
        ("round(x, n)", "takes constants", "round(x, n)"),
        ("transform(array(n), n)", "takes an expression of elements", "n"),
        (
            "transform(array(n), (a, b, c) -> a)",
            "has 3 variables here, not 1 or 2",
            "transform(array(n), (a, b, c) -> a)",
        ),
        ("filter(array(n), a -> a)", "the condition of filter is INT", "a"),
        ("sin(ts)", 'and "sin" takes DOUBLE there', "ts"),
        ("array_contains(n, 1)", "takes an ARRAY there", "n"),
        ("to_date(name, 'bad')", "is not a pattern of to_date", "'bad'"),
        ("timestampadd(EON, 1, ts)", '"eon" is not a unit of timestampadd', "EON"),
        ("rand()", 'function "rand" is unknown', "rand()"),
        ("uuid()", 'function "uuid" is unknown', "uuid()"),
        ("shuffle(array(n))", 'function "shuffle" is unknown', "shuffle(array(n))"),
        ("current_date", 'column "current_date" does not exist', "current_date"),
        ("name RLIKE '('", "is not a regular expression", "'('"),
        ("from_utc_timestamp(ts, 'Mars')", 'no zone is "Mars"', "'Mars'"),
        ("date_trunc('eon', ts)", "is not a unit of date_trunc", "'eon'"),
        ("EXTRACT(ERA FROM ts)", '"ERA" cannot be extracted', "EXTRACT(ERA FROM ts)"),
        ("CAST(n AS DECIMAL(39, 1))", 'type "DECIMAL(39, 1)" is unknown', "DECIMAL(39, 1)"),
        ("n AND flag", "is INT, not BOOLEAN", "n"),
        ("t.n", '"t" is not an input of this query', "t.n"),
        ("count(*)", 'the aggregate "count" is not allowed here', "count(*)"),
        ("(SELECT 1)", "a subquery is not allowed in an expression", "(SELECT 1)"),
        ("n +", 'a value is missing after "+"', "+"),
        ("n n", 'unexpected "n"', "n"),
        ("2147483647 + 1", "has no value: overflow", "2147483647 + 1"),
        ("INTERVAL 1 MONTH = INTERVAL 30 DAYS", "no common type", "INTERVAL 1 MONTH = INTERVAL 30 DAYS"),
        ("aggregate(array(n), 1, 2, (a, b) -> a)", '"aggregate" takes an expression of elements', "a, b) -> a"),
        ("name:a. AS b", "expected the name of a field", "AS"),
        ("name: AS b", "expected the name of a field", "AS"),
        ("name:a.[0]", "expected the name of a field", "["),
        ("name:a[*]", "a path has names and places", "name:a[*]"),
        ("DECIMAL 'much'", "'much' is not a valid DECIMAL", "'much'"),
        ("INT '1x'", "'1x' is not a valid INT", "'1x'"),
        ("INTERVAL '3:70' MINUTE TO SECOND", '"3:70" is not "minute TO second"', "'3:70'"),
        ("n[1]", "is INT, and has no elements", "n"),
        ("array(n)[name]", "the place in an array is STRING", "name"),
        ("name.first", "is STRING, and has no field", "name.first"),
        ("map(name, n) = map(name, n)", "a MAP can neither be compared nor be a key", "map(name, n)"),
        ("to_json(n)", "to_json takes a STRUCT", "n"),
        ("explode(n)", '"explode" is no part of an expression', "explode(n)"),
        ("'open", "' is never closed", "'"),
        ("n; n", "expected one expression", "n"),
        ("", "expected one expression", ""),
    ],
)
def test_a_wrong_expression_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    with pytest.raises(MillraceError) as refused:
        bind_expression(text, ROW.schema)
    assert fact in refused.value.fact
    assert refused.value.hint
    assert refused.value.place is not None and refused.value.place.text == offending


@pytest.mark.parametrize(
    ("text", "advice"),
    [("n = 'abc'", "CAST(... AS STRING)"), ("x > 'abc'", "CAST(... AS STRING)"), ("ts > 'soon'", "Times are written")],
)
def test_text_beside_another_type_is_refused_with_advice_for_that_type(text: str, advice: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind_expression(text, ROW.schema)
    assert advice in refused.value.hint
    assert ("Times" in refused.value.hint) == (advice == "Times are written")


def test_an_unknown_column_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(QueryError) as refused:
        bind_expression("nmae = 'a'", ROW.schema)
    assert 'Did you mean "Name"?' in refused.value.hint
    assert "day_of" in refused.value.hint
