"""Decimals, nested values and JSON against Spark itself: many expressions over random columns in one select each."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millrace.connectors.files.file_reader import read_file
from millrace.kernel.columns.sql_types import sql_name
from millrace.language import bind_expression
from millrace.plan.nodes.endpoints import Connector

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
STRUCTS = pa.list_(pa.struct([("x", pa.int32())]))
MAP = pa.map_(pa.string(), pa.int32())
ROWS = 300
SEED = 20240101

DECIMALS = """
d + e|d - e|d * e|d / e|d % e|d + i|d * i|d / i|i / d|d - 1|d * 1.05|1.5 - d|d / 3|w + d|w * d|w / e|d div e|d div 7
0.1 + 0.2|1 / 3.0|1.0 / 3|2.5 * 2.5|10.00 - 0.5|-d|abs(d)|d + x|d * x|x / d
d = e|d < e|d >= 1.5|d = i|d < x|x > 1.5|d <=> e|d BETWEEN 0 AND 10.5|d IN (0, 1.5, 2.50)|w > d
round(d)|round(d, 1)|round(d, -1)|round(w, 3)|round(2.345, 2)|floor(d)|ceil(d)|floor(w)|ceil(e)
coalesce(d, e, 0)|coalesce(d, i)|if(d > e, d, i)|CASE WHEN d > 0 THEN d ELSE 1.5 END|nullif(d, e)|greatest(d, e, i)
least(d, 0.5)|CAST(d AS BOOLEAN)|CAST(i > 0 AS DECIMAL(3, 1))|CAST(d AS BIGINT)|sqrt(abs(d))|power(d, 2)|concat(d, '!')
CAST(d AS DECIMAL(6, 1))|CAST(d AS DECIMAL(4, 2))|CAST(w AS DECIMAL(38, 2))|CAST(x AS DECIMAL(12, 3))|CAST(d AS INT)
CAST(i AS DECIMAL(5, 2))|CAST(s AS DECIMAL(10, 2))|CAST(s AS DECIMAL(38, 18))|CAST(d AS STRING)|CAST(w AS STRING)
CAST(d AS DOUBLE)
"""


NESTED = """
st.a|st.b.c|l[0]|l[i]|l[-1]|ls.x|ls[1].x|m['k']|m[s]|size(l)|size(m)|array(i, 2 * i)|array(d, 1)|array('x', s)
struct(i, s AS t)|named_struct('p', d, 'q', l)|struct(i, st.a)|st = st|l = array(1, 2)|st <> struct(1, struct('x'))
st < struct(1, struct('x'))|st >= struct(2, struct(s))|l > array(1, NULL)|l <= array(1)|greatest(l, array(1, 2))
least(l, array(1))|l BETWEEN array(1) AND array(1, 2)|l IN (array(1), l)|st IS NULL|coalesce(l, array(7))
if(i > 0, st, NULL)|CAST(l AS ARRAY<STRING>)|CAST(st AS STRUCT<a: STRING, b: STRUCT<c: STRING>>)|to_json(st)
to_json(l)|to_json(ls)|to_json(m)|CAST(st AS STRING)|CAST(l AS STRING)|CAST(ls AS STRING)|CAST(m AS STRING)
CAST(array(x, 1.5e0) AS STRING)|to_json(struct(d, x, i > 0 AS p))|length(b)|CAST(s AS BINARY)|X'01FF'
from_json(j, 'a INT, b STRING')|from_json(j, 'a BIGINT, c ARRAY<INT>, d STRUCT<e: DOUBLE>')|from_json(j, 'ARRAY<INT>')
from_json(j, 'MAP<STRING, STRING>')|from_json(j, 'a DECIMAL(6, 2)').a|from_json(j, 'd STRING').d
from_json(j, 'p BOOLEAN').p|get_json_object(j, '$.a')|get_json_object(j, '$.b')|get_json_object(j, '$.c')
get_json_object(j, '$.c[1]')|get_json_object(j, '$.d.e')|get_json_object(j, '$.d')|get_json_object(j, '$.none')
get_json_object(j, '$')
"""
INTERVALS = """
make_dt_interval(i)|CAST(make_dt_interval(i, i) AS STRING)|CAST(make_dt_interval(0, 0, i, 0.5) AS STRING)
CAST(make_ym_interval(0, i) AS STRING)|CAST(make_ym_interval(i, 7) AS STRING)
DATE '2024-02-29' + make_ym_interval(0, i)|TIMESTAMP '2024-01-31 10:00:00' + make_ym_interval(0, i)
TIMESTAMP '1969-12-31 23:59:59' - make_ym_interval(i)|TIMESTAMP '1969-12-31 23:59:59' - make_dt_interval(i, 1)
DATE '2024-01-31' + INTERVAL '1' HOUR|DATE '2024-01-31' - INTERVAL 1 YEAR|CAST(make_dt_interval(i) * 2 AS STRING)
CAST(make_dt_interval(i) / 7 AS STRING)|CAST(make_ym_interval(i) / 7 AS STRING)
CAST(1.5 * make_dt_interval(i) AS STRING)|CAST(-make_dt_interval(i, 5) AS STRING)
CAST(-make_ym_interval(i, 5) AS STRING)|make_dt_interval(i) > INTERVAL '25:03' HOUR TO MINUTE
make_ym_interval(0, i) <= INTERVAL '1-2' YEAR TO MONTH
make_ym_interval(0, i) BETWEEN INTERVAL -2 YEARS AND INTERVAL 14 MONTHS|make_dt_interval(i) = INTERVAL 3 DAYS
CAST(make_dt_interval(i) - INTERVAL '3:30' MINUTE TO SECOND AS STRING)|extract(DAY FROM make_dt_interval(i, 30))
CAST(make_ym_interval(0, i) + INTERVAL 2 YEARS 3 MONTHS AS STRING)|extract(HOUR FROM make_dt_interval(0, i, 7))
extract(SECOND FROM make_dt_interval(0, 0, i, 4.25))|extract(MONTH FROM make_ym_interval(0, i))
extract(MINUTE FROM make_dt_interval(0, 0, i))|extract(YEAR FROM make_ym_interval(0, i))
to_json(struct(make_dt_interval(i, 1) AS a, make_ym_interval(0, i) AS b))
CAST('1 02:03:04.5' AS INTERVAL DAY TO SECOND)
greatest(make_dt_interval(i), INTERVAL '1 00:00:01' DAY TO SECOND)
CAST(CAST('-2-3' AS INTERVAL YEAR TO MONTH) AS STRING)|if(i > 0, make_dt_interval(i), NULL)
coalesce(make_dt_interval(i), INTERVAL '5:03:04' HOUR TO SECOND)
"""
JSON_TEXTS = [
    '{"a":1,"b":"x","c":[1,2],"d":{"e":1.5}}', '{"a":12.345,"b":7,"p":true}', '{"a":"no","b":null,"c":"x"}', "[1,2]",
    '{"b":"\\u00fc\\"q\\"","d":{"e":null}}', ' {"a" : 2 , "c":[ 3 ]} ', '{"c":[1,"x"],"a":5}', "null", "7", '"t"',
    "bad", "", '{"a":1', "[]", "{}",
]  # fmt: skip


def columns() -> pa.RecordBatch:
    draw = random.Random(SEED)

    def some(make: Any) -> list[Any]:
        return [None if draw.random() < 0.1 else make() for _ in range(ROWS)]

    def decimal(precision: int, scale: int) -> Any:
        def make() -> Decimal:
            room = 10 ** draw.choice([1, precision // 2, precision]) - 1
            return Decimal(draw.randint(-room, room)).scaleb(-scale)

        return make

    def number() -> float:
        return draw.choice([0.0, 1.255, -0.005, 1e17, 123.4565, draw.uniform(-1e4, 1e4), draw.uniform(-1, 1)])

    texts = ["1.255", " -3.5 ", "1e3", "abc", "", "99999999999", ".5", "5.", "+7", "0.0000000001", "1.5e-3", "-0"]
    small = [Decimal(draw.randint(-999, 999)).scaleb(-2) for _ in range(ROWS)]
    return pa.record_batch(
        {
            "d": pa.array(some(decimal(10, 2)), pa.decimal128(10, 2)),
            "e": pa.array([None if draw.random() < 0.1 else each for each in small], pa.decimal128(5, 2)),
            "w": pa.array(some(decimal(26, 10)), pa.decimal128(38, 10)),
            "i": pa.array(some(lambda: draw.randint(-200, 200)), pa.int32()),
            "x": pa.array(some(number), pa.float64()),
            "s": pa.array(some(lambda: draw.choice(texts)), pa.string()),
            "st": pa.array(some(lambda: {"a": draw.randint(0, 3), "b": {"c": draw.choice(["x", None])}}), STRUCT),
            "l": pa.array(some(lambda: draw.choice([[], [1, 2], [None, 3], [1]])), pa.list_(pa.int32())),
            "ls": pa.array(some(lambda: draw.choice([[], [{"x": 1}, {"x": None}], [None]])), STRUCTS),
            "m": pa.array(some(lambda: draw.choice([[], [("k", 1), ("abc", 2)], [("k", None)]])), MAP),
            "b": pa.array(some(lambda: draw.choice([b"", b"\x00\xff", b"text"])), pa.binary()),
            "j": pa.array(some(lambda: draw.choice(JSON_TEXTS)), pa.string()),
        }
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("given", [DECIMALS, NESTED, INTERVALS], ids=["decimals", "nested", "intervals"])
def test_values_have_the_types_and_values_of_spark_on_spark(given: str, spark_session: Any) -> None:
    rows = columns()
    texts = given.strip().replace("\n", "|").split("|")
    theirs = in_spark(spark_session, rows, texts)
    wrong = []
    for number, text in enumerate(texts):
        found = bind_expression(text, rows.schema).over(rows)
        expected = theirs.column(number)
        pairs = zip(found.to_pylist(), expected.to_pylist(), range(ROWS), strict=True)
        unlike = [(ours, other, rows.slice(row, 1).to_pylist()) for ours, other, row in pairs if not same(ours, other)]
        if found.type != expected.type or unlike:
            wrong.append((text, sql_name(found.type), sql_name(expected.type), unlike[:2]))
    assert wrong == []


def in_spark(session: Any, rows: pa.RecordBatch, texts: list[str], ending: str = "") -> pa.Table:
    """What Spark gives for expressions over rows; without ANSI mode, which is our yardstick."""
    # To compile what is run once takes longer than to run it.
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        session.createDataFrame(pa.Table.from_batches([rows])).createOrReplaceTempView("given")
        selected = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        return session.sql(f"SELECT {selected} FROM given {ending}").toArrow()
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or abs(ours - theirs) <= 1e-12 * abs(theirs) or (ours != ours and theirs != theirs)
    return bool(ours == theirs)


@pytest.mark.spark
@pytest.mark.slow
def test_objects_in_a_column_of_text_are_what_spark_reads_on_spark(spark_session: Any, tmp_path: Path) -> None:
    """To the letter; `from_json` leaves blanks out and writes numbers again, there and here."""
    texts = [
        '{"p":[1, 2] , "q":"\\u00fc", "e":1.50, "f":1e5}',
        "[ 1.0E2 ]",
        "{}",
        '{"a": {"b" : 0.1234567890123456789}}',
    ]
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"t": {text} , "st":{{"t":{text} }}}}\n' for text in texts))
    read = spark_session.read.schema("t STRING, st STRUCT<t: STRING>").json(str(path)).collect()
    schema = pa.schema([("t", pa.string()), ("st", pa.struct([("t", pa.string())]))])
    ours = [row for batch in read_file(path, Connector("json", {}), schema) for row in batch.rows.to_pylist()]
    assert ours == [{"t": each.t, "st": {"t": each.st.t}} for each in read]
    assert [each["t"] for each in ours] == texts
