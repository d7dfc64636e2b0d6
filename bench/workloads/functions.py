"""Processor time of SQL functions over the same columns: here, in DuckDB and in polars, as ratios per family.

Each system runs in a process of its own with one thread, the best of the rounds. Columns have different values in
almost every row, and nulls, so that a function that is computed once per distinct value gains nothing. A ratio of 0.5
is half as fast as DuckDB; below 0.2 a function is named: it may be a loop over rows. polars is measured where it is
installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measures import result_log
from millrace.language import bind_expression

# here | DuckDB, `=` for the same text | polars, over `c` for pl.col; `-` where a system has it not.
CASES = {
    "Conditions": """
coalesce(i, j) | = | pl.coalesce(c.i, c.j)
if(i > 10, s, t) | CASE WHEN i > 10 THEN s ELSE t END | pl.when(c.i > 10).then(c.s).otherwise(c.t)
nullif(i, 5) | = | pl.when(c.i != 5).then(c.i)
greatest(i, j) | = | pl.max_horizontal(c.i, c.j)
CASE WHEN x > 0 THEN x WHEN x > -5 THEN y ELSE 0 END | = | pl.when(c.x > 0).then(c.x).when(c.x > -5).then(c.y).otherwise(0)
CAST(i AS STRING) | CAST(i AS VARCHAR) | c.i.cast(pl.String)
CAST(n AS INT) | TRY_CAST(n AS INT) | c.n.cast(pl.Int32, strict=False)
CAST(x AS DECIMAL(12, 2)) | = | c.x.cast(pl.Decimal(12, 2))
""",  # noqa: E501
    "Text": """
upper(s) | = | c.s.str.to_uppercase()
length(s) | = | c.s.str.len_chars()
trim(s) | = | c.s.str.strip_chars(" ")
substring(s, 2, 4) | = | c.s.str.slice(1, 4)
replace(s, 'a', 'bb') | = | c.s.str.replace_all("a", "bb", literal=True)
concat(s, '-', t) | = | pl.concat_str(c.s, pl.lit("-"), c.t)
concat_ws(',', s, t) | = | pl.concat_str(c.s, c.t, separator=",", ignore_nulls=True)
contains(s, 'ab') | = | c.s.str.contains("ab", literal=True)
s LIKE '%a_b%' | = | -
rlike(s, '[a-c]+[0-9]') | regexp_matches(s, '[a-c]+[0-9]') | c.s.str.contains("[a-c]+[0-9]")
regexp_replace(s, '[0-9]+', '#') | regexp_replace(s, '[0-9]+', '#', 'g') | c.s.str.replace_all("[0-9]+", "#")
regexp_extract(s, '([a-z]+)([0-9]+)', 2) | = | c.s.str.extract("([a-z]+)([0-9]+)", 2)
split(s, '-') | string_split(s, '-') | c.s.str.split("-")
split_part(s, '-', 2) | = | -
lpad(s, 20, '*') | = | c.s.str.pad_start(20, "*")
instr(s, 'b') | = | c.s.str.find("b", literal=True)
initcap(s) | - | c.s.str.to_titlecase()
translate(s, 'abc', 'xyz') | = | c.s.str.replace_many(["a", "b", "c"], ["x", "y", "z"])
reverse(s) | = | c.s.str.reverse()
repeat(s, 2) | = | -
left(s, 3) | = | c.s.str.head(3)
ascii(s) | = | -
levenshtein(s, t) | = | -
format_string('%s-%d', s, i) | format('{}-{}', s, i) | pl.format("{}-{}", c.s, c.i)
substring_index(s, '-', 1) | - | -
find_in_set(s, 'a,b,c') | - | -
overlay(s PLACING '__' FROM 2) | - | -
soundex(s) | - | -
url_encode(s) | = | -
parse_url(u, 'HOST') | - | -
""",
    "Hashes and encodings": """
md5(s) | = | -
sha1(s) | = | -
sha2(s, 256) | sha256(s) | -
crc32(s) | - | -
xxhash64(s) | hash(s) | c.s.hash()
hash(s) | hash(s) | c.s.hash()
base64(CAST(s AS BINARY)) | base64(encode(s)) | c.s.cast(pl.Binary).bin.encode("base64")
hex(s) | = | c.s.cast(pl.Binary).bin.encode("hex")
""",
    "Numbers": """
i + j * 2 | = | c.i + c.j * 2
x / y | = | c.x / c.y
i % 7 | = | c.i % 7
d * 1.19 | = | c.d * pl.lit("1.19").cast(pl.Decimal(3, 2))
d + d | = | c.d + c.d
abs(x) | = | c.x.abs()
round(x, 2) | = | c.x.round(2)
floor(x) | = | c.x.floor()
sqrt(abs(x)) | = | c.x.abs().sqrt()
power(x, 2) | = | c.x.pow(2)
ln(abs(x) + 1) | = | (c.x.abs() + 1).log()
log10(abs(x) + 1) | = | (c.x.abs() + 1).log10()
sin(x) | = | c.x.sin()
sign(x) | = | c.x.sign()
pmod(i, 7) | ((i % 7) + 7) % 7 | c.i % 7
bit_count(i) | = | c.i.bitwise_count_ones()
i & j | = | c.i & c.j
shiftleft(i, 2) | i << 2 | -
hypot(x, y) | - | -
width_bucket(x, -100, 100, 20) | - | -
bin(i) | = | -
conv(n, 10, 16) | - | -
factorial(abs(j) % 15) | = | -
bround(x, 1) | round_even(x, 1) | c.x.round(1, mode="half_to_even")
try_add(i, j) | - | -
try_divide(i, j) | - | -
format_number(x, 2) | format('{:,.2f}', x) | -
""",
    "Dates and times": """
year(ts) | = | c.ts.dt.year()
hour(ts) | = | c.ts.dt.hour()
dayofweek(da) | = | c.da.dt.weekday()
weekofyear(da) | = | c.da.dt.week()
date_trunc('hour', ts) | = | c.ts.dt.truncate("1h")
date_trunc('month', ts) | = | c.ts.dt.truncate("1mo")
date_add(da, 3) | da + 3 | c.da.dt.offset_by("3d")
datediff(da, DATE '2020-01-01') | date_diff('day', DATE '2020-01-01', da) | (c.da - pl.date(2020, 1, 1)).dt.total_days()
add_months(da, 2) | da + INTERVAL 2 MONTHS | c.da.dt.offset_by("2mo")
months_between(ts, TIMESTAMP '2020-01-01 00:00:00') | - | -
last_day(da) | = | c.da.dt.month_end()
next_day(da, 'MON') | - | -
make_date(2020, 1 + abs(j) % 12, 5) | = | pl.date(2020, 1 + c.j.abs() % 12, 5)
unix_timestamp(ts) | epoch(ts) | c.ts.dt.epoch("s")
timestamp_seconds(i) | to_timestamp(i) | pl.from_epoch(c.i, "s")
date_format(ts, 'yyyy-MM-dd HH:mm') | strftime(ts, '%Y-%m-%d %H:%M') | c.ts.dt.strftime("%Y-%m-%d %H:%M")
to_date(w) | TRY_CAST(w AS DATE) | c.w.str.to_date("%Y-%m-%d", strict=False)
to_timestamp(w, 'yyyy-MM-dd') | TRY_STRPTIME(w, '%Y-%m-%d') | c.w.str.to_datetime("%Y-%m-%d", strict=False)
from_utc_timestamp(ts, 'Europe/Berlin') | ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' | c.ts.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
ts + INTERVAL 90 MINUTES | = | c.ts + pl.duration(minutes=90)
dayname(da) | = | c.da.dt.strftime("%a")
timestampdiff(HOUR, ts, TIMESTAMP '2024-01-01 00:00:00') | date_diff('hour', ts, TIMESTAMP '2024-01-01 00:00:00') | -
""",  # noqa: E501
    "Arrays, maps and structs": """
size(l) | len(l) | c.l.list.len()
l[1] | l[2] | c.l.list.get(1, null_on_oob=True)
array_contains(l, 3) | list_contains(l, 3) | c.l.list.contains(3)
array_position(l, 3) | list_position(l, 3) | -
sort_array(l) | list_sort(l) | c.l.list.sort()
array_distinct(l) | list_distinct(l) | c.l.list.unique()
array_max(l) | list_max(l) | c.l.list.max()
array_join(k, '-') | array_to_string(k, '-') | c.k.list.join("-")
array_union(l, o) | list_distinct(list_concat(l, o)) | c.l.list.set_union(c.o)
array_intersect(l, o) | list_intersect(l, o) | c.l.list.set_intersection(c.o)
arrays_overlap(l, o) | list_has_any(l, o) | -
concat(l, o) | list_concat(l, o) | c.l.list.concat(c.o)
slice(l, 2, 2) | l[2:3] | c.l.list.slice(1, 2)
reverse(l) | list_reverse(l) | c.l.list.reverse()
flatten(array(l, o)) | flatten([l, o]) | -
transform(l, x -> x + 1) | list_transform(l, lambda x: x + 1) | c.l.list.eval(pl.element() + 1)
filter(l, x -> x > 3) | list_filter(l, lambda x: x > 3) | c.l.list.filter(pl.element() > 3)
exists(l, x -> x > 3) | len(list_filter(l, lambda x: x > 3)) > 0 | c.l.list.eval(pl.element() > 3).list.any()
aggregate(l, 0, (a, x) -> a + x) | list_sum(l) | c.l.list.sum()
zip_with(l, l, (a, b) -> a + b) | - | -
sequence(1, abs(j) % 9 + 1) | range(1, abs(j) % 9 + 2) | pl.int_ranges(1, c.j.abs() % 9 + 2)
map_keys(m) | = | -
map_values(m) | = | -
m['a'] | m['a'] | -
element_at(l, -1) | l[-1] | c.l.list.last()
map_filter(m, (k, v) -> v > 2) | - | -
st.u | st.u | c.st.struct.field("u")
struct(i, s) | {'i': i, 's': s} | pl.struct("i", "s")
""",
    "JSON": """
get_json_object(js, '$.a') | json_extract_string(js, '$.a') | c.js.str.json_path_match("$.a")
from_json(js, 'a INT, b STRING').b | CAST(js AS STRUCT(a INT, b VARCHAR)).b | c.js.str.json_decode(pl.Struct({"a": pl.Int64, "b": pl.String})).struct.field("b")
to_json(struct(i, s)) | to_json({'i': i, 's': s}) | pl.struct("i", "s").struct.json_encode()
""",  # noqa: E501
}  # fmt: skip
SLOW = 0.2
"""The share of DuckDB's speed below which a function is named."""
_MOST = 300_000
"""Rows: the ratios of columns that are larger are the same."""

Row = tuple[str, str, str]
Times = dict[str, float | str]


def cases() -> dict[str, list[Row]]:
    """By family the expression here, in DuckDB and in polars."""
    found: dict[str, list[Row]] = {}
    for family, text in CASES.items():
        for line in text.strip().splitlines():
            here, duck, polars = (part.strip() for part in _parts(line))
            found.setdefault(family, []).append((here, here if duck == "=" else duck, polars))
    return found


def _parts(line: str) -> list[str]:
    parts = line.split(" | ")
    assert len(parts) == 3, line
    return parts


def columns(rows: int) -> pa.Table:
    """Columns of different values, a tenth of them null."""
    draw = np.random.default_rng(19)

    def some(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind, mask=draw.random(rows) < 0.1)

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(np.arange(0, 4 * rows + 1, 4), pa.int32()), values)

    numbers = draw.integers(-(10**6), 10**6, rows)
    texts = np.char.add(np.char.add("abc", numbers.astype(str)), "-Xb c")
    days = draw.integers(10_000, 20_000, rows)
    cents = draw.integers(-(10**6), 10**6, rows)
    whole = some(draw.integers(-(10**9), 10**9, rows), pa.int64())
    inner = pa.array(draw.integers(0, 9, 4 * rows), pa.int32())
    words = pa.array(np.char.add("w", draw.integers(0, 10**6, 4 * rows).astype(str)))
    keys = pa.array(np.tile(["a", "b", "c", "d"], rows))
    offsets = pa.array(np.arange(0, 4 * rows + 1, 4), pa.int32())
    return pa.table(
        {
            "i": some(draw.integers(0, 10**6, rows), pa.int32()),
            "j": some(numbers, pa.int32()),
            "x": some(draw.uniform(-100, 100, rows)),
            "y": some(draw.uniform(1, 100, rows)),
            "d": pa.array(cents, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2)),
            "s": some(texts.tolist(), pa.string()),
            "t": some(texts[::-1].tolist(), pa.string()),
            "n": some(numbers.astype(str).tolist(), pa.string()),
            "u": some(np.char.add("https://host/p?q=", numbers.astype(str)).tolist(), pa.string()),
            "w": some(days.astype("datetime64[D]").astype(str).tolist(), pa.string()),
            "ts": some(days * 86_400_000_000 + draw.integers(0, 86_400_000_000, rows), pa.timestamp("us")),
            "da": some(days.astype(np.int32), pa.date32()),
            "g": whole,
            "l": lists(inner),
            "o": lists(inner.take(pa.array(draw.permutation(4 * rows)))),
            "k": lists(words),
            "m": pa.MapArray.from_arrays(offsets, keys, inner),
            "st": pa.StructArray.from_arrays([pa.array(numbers), pa.array(texts.tolist())], ["u", "v"]),
            "js": some([f'{{"a": {each}, "b": "x{each}"}}' for each in numbers.tolist()], pa.string()),
        }
    )


def run(rows: int, rounds: int) -> None:
    """Measure all functions in the three systems, print ratios per family, and append them."""
    count = min(rows, _MOST)
    found = {name: _alone(name, count, rounds) for name in ("millrace", "duckdb", "polars")}
    entries, slow = [], []
    for family, lines in cases().items():
        ratios: dict[str, list[float]] = {"duckdb": [], "polars": []}
        for here, _, _ in lines:
            ours = found["millrace"].get(here)
            entry: dict[str, Any] = {"family": family, "function": here, "rows": count, "here": ours}
            for peer, shares in ratios.items():
                theirs = found[peer].get(here)
                entry[peer] = theirs
                if isinstance(ours, float) and isinstance(theirs, float):
                    shares.append(theirs / ours)
                    entry[f"of_{peer}"] = round(theirs / ours, 3)
            entries.append(entry)
            slow += [entry] if entry.get("of_duckdb", 1) < SLOW else []
        print(f"{family:<26}" + "".join(_share(peer, shares) for peer, shares in ratios.items()), flush=True)
    for entry in slow:
        print(f"slow: {entry['function']}: {entry['of_duckdb']} of DuckDB")
    missing = [f"{entry['function']}: {entry['here']}" for entry in entries if isinstance(entry["here"], str)]
    print(*(f"not here: {each}" for each in missing), sep="\n")
    print(f"appended to {result_log.append('functions', result_log.circumstances(), entries)}")


def _share(peer: str, shares: list[float]) -> str:
    if not shares:
        return f"  {peer}: -"
    return f"  {peer}: x {median(shares):5.2f} in the median, {min(shares):5.2f} at least, of {len(shares)}"


def _alone(system: str, rows: int, rounds: int) -> Times:
    """What is measured of a system in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (system, rows, rounds))


def measured(system: str, rows: int, rounds: int) -> Times:
    """The seconds of each expression in a system; a text where it fails."""
    makes: dict[str, Callable[[pa.Table], Callable[[Row], Callable[[], object]]]]
    makes = {"millrace": _millrace, "duckdb": _duckdb, "polars": _polars}
    try:
        make = makes[system](columns(rows))
    except ImportError:
        return {}
    times: Times = {}
    for case in (each for lines in cases().values() for each in lines):
        # A peer may raise anything for what it has not.
        try:
            work = make(case)
            times[case[0]] = min(_seconds(work) for _ in range(rounds + 1))
        except Exception as error:
            times[case[0]] = str(error).splitlines()[0][:100]
    return times


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _millrace(table: pa.Table) -> Callable[[Row], Callable[[], object]]:
    pa.set_cpu_count(1)
    given = table.cast(pa.schema([_zoned(field) for field in table.schema])).combine_chunks().to_batches()[0]

    def make(case: Row) -> Callable[[], object]:
        expression = bind_expression(case[0], given.schema)
        return lambda: expression.over(given)

    return make


def _zoned(field: pa.Field) -> pa.Field:
    return field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field


def _duckdb(table: pa.Table) -> Callable[[Row], Callable[[], object]]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", table)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")

    def make(case: Row) -> Callable[[], object]:
        if case[1] == "-":
            raise LookupError("it has no such function")
        # Counting the values computes them all, and keeps none.
        return lambda: connection.execute(f"SELECT count({case[1]}) FROM t").fetchall()

    return make


def _polars(table: pa.Table) -> Callable[[Row], Callable[[], object]]:
    import os

    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    frame: Any = pl.from_arrow(table.drop_columns(["m"]))
    names = {"pl": pl, "c": pl.col}

    def make(case: Row) -> Callable[[], object]:
        if case[2] == "-":
            raise LookupError("it has no such function")
        expression = eval(case[2], names)
        return lambda: frame.select(expression.alias("r"))

    return make
