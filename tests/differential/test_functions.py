"""Every scalar function against Spark itself: its example, and expressions over random columns, many in one select."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millrace.kernel.columns.sql_types import sql_name
from millrace.language import bind_expression
from millrace.language.expressions.functions import FAMILIES
from tests.differential.test_values import in_spark, same

ROWS = 250
SEED = 20240519
UTC = dt.UTC
WORDS = [
    "", " ", "a", "abc", "Spark SQL", "ÄÖü ß", "日本語 text", "aXbXc", "a,b,,c", "foo@bar.org", "  padded ", "100-200",
    "x%y_z", "1.5", "-7", "tab\there", "line\nbreak", "aaa", "AbCaBc", "𝒳 math", "0x1F", "e\u0301", "a.b.c", "Ashcraft",
]  # fmt: skip
TIMES_AS_TEXT = [
    "2024-02-29 12:30:15", "2023-02-29 00:00:00", "29/02/2024", "1969-12-31 23:59:59", "2024-13-01 00:00:00", "bad", "",
    "2024-06-01 25:00:00", "01 Mar 2024", "2024-03-10 02:30:00", "2024-02-29 12:30:15.123", "7:05 PM",
    "2024-02-29T12:30:15+02:00", "2024-5-1", "1212", "2024-05", "2024-5-1 1:2", "2024-05-01 1:2:3.1234567 UTC+2",
]  # fmt: skip
URLS = [
    "http://user:pass@host.org:8080/a/b?x=1&y=2#frag", "https://spark.apache.org", "ftp://h/p", "not a url", "",
    "/rel?q=1", "http://h?x=%20&x=2", "mailto:a@b.c",
]  # fmt: skip
NOT_OF_SPARK = ("dayofweek_iso", "epoch", "json_value", "json_query", "to_char", "make_ym_interval")
"""Functions that Spark has not, or not with the same patterns, or whose values it does not hand over as Arrow."""
ZONES = ["UTC", "America/New_York", "Europe/Paris", "Asia/Kolkata", "+05:30", "PST", "Australia/Lord_Howe"]

TEXT = r"""
lower(s)|initcap(s)|length(s)|octet_length(s)|bit_length(s)|trim(s)|trim(BOTH 'a ' FROM s)|ltrim(s)|rtrim('c ', s)
trim(LEADING 'a' FROM s)|trim(TRAILING t FROM s)|btrim(s, t)|lpad(s, 7, 'xy')|rpad(s, 4)|lpad(s, k, t)|rpad(s, 9, t)
lpad(s, 12, '*')|substring(s, 2, 3)|substring(s, -3)|substring(s, -9, 8)|substring(s, k, 2)|substring(s, 0, 2)
substring(s, k - 3, k)|left(s, 2)|right(s, 2)|left(s, k)|right(s, k - 2)|substring_index(s, 'X', 2)
substring_index(s, ',', -2)|substring_index(s, t, k - 3)|split_part(s, '.', 2)|split_part(s, ',', -1)
split_part(s, t, 1)|overlay(s, 'zz', 2)|overlay(s, t, k, 1)|overlay(s PLACING 'q' FROM 3 FOR 2)|replace(s, 'a', 'ÄÄ')
replace(s, t)|replace(s, '')|translate(s, 'abcX', '12')|translate(s, t, 'q')|repeat(s, 2)|repeat(t, k - 2)|reverse(s)
space(k)|concat(s, t)|concat(b, b)|concat_ws('-', s, t, 'x')|concat_ws(t, ls)|concat_ws(', ', ls, s, ls)
concat_ws('x')|startswith(s, 'a')|startswith(s, t)|endswith(s, 'c')|endswith(s, t)|contains(s, 'X')|contains(s, t)
locate('b', s)|locate(t, s)|locate('a', s, k)|instr(s, t)|position('X' IN s)|position('b', s)|find_in_set(t, 'a,b,,X')
find_in_set('a', s)|elt(k, s, t)|ascii(s)|chr(i)|chr(k + 64)|levenshtein(s, t)|levenshtein(s, 'abc', 3)|soundex(s)
soundex(t)|luhn_check(s)|format_string('%s is %d', s, i)|format_string('%5.2f|%-6s|%x', x, t, k)
format_string('%,d %05d', n, k)|printf('%s', d)|format_string('%e %g', x, x)|format_string('%b %S %%', i > 0, t)
format_string('%2$s %1$s', s, t)|format_number(x, 2)|format_number(i, 0)|format_number(d, 1)|format_number(n, 3)
s LIKE 'a%'|s LIKE '%\\_%'|s LIKE t|s LIKE 'x/%%' ESCAPE '/'|s ILIKE '%SPARK%'|s LIKE ANY ('a%', '%b')
s LIKE ALL ('a%', '%c')|s NOT LIKE ANY ('a%', 'b%')|s RLIKE '^[a-z]+$'|regexp_like(s, 'X|b')|s RLIKE '(?i)spark'
s RLIKE t|split(s, ',')|split(s, 'X', 2)|split(s, '')|split(s, '[,X.]')|split(s, '\\s+')|split(s, t)|split(t, 'b?')
split(s, ',', 1)|split(s, '(?=b)')|regexp_extract(s, '(\\d+)-(\\d+)', 2)|regexp_extract(s, '([a-z])([A-Z])?')
regexp_extract(s, '[a-z]+', 0)|regexp_extract(s, '(?<!X)(b)', 1)|regexp_extract_all(s, '([a-c])')
regexp_extract_all(s, '(a)(X|,)?', 2)|regexp_replace(s, '[aeiou]', '*')|regexp_replace(s, '(\\w)(\\w)', '$2$1')
regexp_replace(s, 'a', '\\$')|regexp_replace(s, 'a', 'b', 2)|regexp_replace(s, '(?=b)', '-')
regexp_replace(t, '', '-')|regexp_replace(s, t, 'q')|regexp_count(s, '[a-z]')|regexp_count(t, '')
regexp_substr(s, '[A-Z]+')|regexp_instr(s, 'b')|regexp_instr(s, t)|str_to_map('a:1,b:2')|str_to_map('a=1;b', ';', '=')
substring(s, '2')|substring(s, 1.5, 2)|regexp_extract(t, '(q)', k)|regexp_extract_all(t, 'q', k)
lower(i)|upper(CAST(x AS STRING))|concat(i, ts)|concat(s, t, k)|char_length(s)|contains(i, '1')|repeat(i, 2)
decode(encode(s, 'UTF-8'), 'UTF-8')|encode(s, 'UTF-16BE')
"""
ENCODINGS = """
md5(s)|md5(b)|sha1(s)|sha2(s, 256)|sha2(s, 0)|sha2(b, 512)|sha2(s, 7)|crc32(s)|hash(s)|hash(i)|hash(n)|hash(x)|hash(d)
hash(w)|hash(b)|hash(ts)|hash(da)|hash(s, i, x)|hash(l)|hash(ls)|hash(i > 0)|hash(NULL, i)|hash(struct(i, s))|hash(f)
xxhash64(s)|xxhash64(i)|xxhash64(n)|xxhash64(x)|xxhash64(d)|xxhash64(w)|xxhash64(b)|xxhash64(ts)|xxhash64(da)
xxhash64(s, i, x)|xxhash64(l)|xxhash64(repeat(s, 9))|hash(repeat(s, 9))|xxhash64(repeat(s, 5), t)|base64(s)|base64(b)
unbase64(base64(s))|hex(i)|hex(n)|hex(s)|hex(b)|unhex(hex(s))|unhex(s)|unhex('A')|encode(s, 'UTF-8')
encode(s, 'UTF-16')|decode(b, 'ISO-8859-1')|url_encode(s)|url_decode(url_encode(s))|parse_url(u, 'HOST')
parse_url(u, 'PATH')|parse_url(u, 'QUERY')|parse_url(u, 'REF')|parse_url(u, 'PROTOCOL')|parse_url(u, 'FILE')
parse_url(u, 'AUTHORITY')|parse_url(u, 'USERINFO')|parse_url(u, 'QUERY', 'x')
"""
NUMBERS = """
CAST(-2147483648 AS INT) % (k - k - 1)|CAST(-2147483648 AS INT) div (k - k - 1)|mod(-9223372036854775807 - 1, k - k - 1)
sign(x)|sign(i)|sign(d)|abs(i)|abs(d)|abs(x)|mod(i, k)|mod(d, 7)|mod(n, k)|x % y|pmod(i, k)|pmod(i, -7)|pmod(x, y)
pmod(d, 3)|pmod(n, 5)|div(i, k)|i div k|bround(x, 1)|bround(d, 1)|bround(d)|bround(i, -1)|rint(x)|floor(y)|ceil(d)
sqrt(x)|cbrt(x)|hypot(x, y)|hypot(i, k)|power(y, 2)|power(x, k)|exp(y)|expm1(y)|ln(x)|log(x)|log(2, x)|log(k, y)
log10(x)|log2(x)|log1p(x)|log10(i)|e()|pi()|sin(y)|cos(y)|tan(y)|cot(y)|sec(y)|csc(y)|asin(y)|acos(y)|atan(x)
atan2(x, y)|sinh(y)|cosh(y)|tanh(y)|asinh(y)|acosh(y)|atanh(y)|degrees(x)|radians(x)|factorial(k)|factorial(i)
width_bucket(y, 0.0, 0.5, 4611686018427387907)
width_bucket(y, 0.0, 5.0, 4)|width_bucket(x, 10, -10, 5)|width_bucket(y, y, 3, k)|nanvl(x, 7)|nanvl(x, y)|isnan(x)
try_add(i, 2147483600)|try_add(n, n)|try_subtract(n, 9223372036854775000)|try_multiply(i, i)|try_add(x, y)
try_multiply(n, i)|try_divide(i, k)|try_divide(x, k)|try_mod(i, k)|try_add(d, d)|i & k|i & 7|n ^ i|~i|~n|i & n
shiftleft(i, k)|shiftright(n, 3)|shiftrightunsigned(i, k)|shiftrightunsigned(n, 60)|i << 2|n >> k|shiftleft(n, i)
bit_count(i)|bit_count(n)|bit_count(i > 0)|bit_get(i, 3)|bin(i)|bin(n)|conv(s, 16, 10)|conv(i, 10, 16)|conv(i, 10, -2)
conv(s, 36, 10)|round(d, 1)|round(i, -2)|negative(i)|greatest(i, k)|least(d, i)|greatest(s, t)|least(ts, ts)
nullif(i, k)|nullif(i, 2.0)
nullif(d, k)|nvl(i, 0)|ifnull(d, 1)|nvl2(s, i, k)|coalesce(i, n)|zeroifnull(i)|nullifzero(k)|if(i > 0, s, t)
equal_null(i, k)|isnull(i)|isnotnull(s)|decode(k, 1, 'one', 2, 'two')|decode(k, 1, i, NULL, 7, n)|i <=> k|typeof(i)
typeof(d)|typeof(l)|typeof(st)|typeof(m)|typeof(ts)|boolean(k)|int(y)|bigint(s)|string(x)|double(s)|TRY_CAST(t AS INT)
conv(concat('-', s), 3, -7)|conv('-0', 10, -2)
date(ts)|float(s)|smallint(k)|if(n < 100 AND n > -100, n * n, 0)|CASE WHEN i > 0 THEN factorial(i) END
"""
TIMES = """
date_add(da, k)|date_sub(da, i)|date_add(ts, 1)|datediff(da, ts)|datediff(ts, '2024-01-01')
date_diff(da, DATE '1970-01-01')|add_months(da, k)|add_months(ts, -13)|add_months(da, i)|months_between(ts, da)
months_between(da, ts, false)|months_between(ts, TIMESTAMP '2024-02-29 12:00:00')|last_day(da)|last_day(ts)
next_day(da, 'Mon')|next_day(da, t)|next_day(ts, 'SUNDAY')|make_date(2024, k, 31)|make_date(k + 2020, 2, 29)
make_timestamp(2024, 2, k + 26, 3, 4, 5.678)|make_timestamp(2024, 3, 10, k, 30, 0, 'America/New_York')
make_timestamp(2024, 11, 3, k, 30, 60, 'America/New_York')|from_utc_timestamp(ts, 'America/New_York')
from_utc_timestamp(ts, z)|from_utc_timestamp(ts, 'GMT+8')|to_utc_timestamp(ts, 'America/New_York')
to_utc_timestamp(ts, 'Europe/Paris')|to_utc_timestamp(ts, z)|to_utc_timestamp(ts, '+01:00')
unix_timestamp(greatest(ts, TIMESTAMP '1970-01-01 00:00:00'))|unix_timestamp(p, 'yyyy-MM-dd HH:mm:ss')
unix_seconds(ts)|unix_millis(ts)|unix_micros(ts)|unix_date(da)|date_from_unix_date(i)|timestamp_seconds(i)
timestamp_millis(n div 1000000000)|timestamp_micros(n div 1000000)|from_unixtime(i)|from_unixtime(i, 'yyyy/MM/dd')
to_date(p)|to_date(p, 'dd/MM/yyyy')|to_date(p, 'dd MMM yyyy')|to_timestamp(p, 'yyyy-MM-dd HH:mm:ss')
to_timestamp(p, 'yyyy-MM-dd HH:mm:ss[.SSS]')|to_timestamp(p, "yyyy-MM-dd'T'HH:mm:ssXXX")|to_timestamp(p, 'h:mm a')
date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')|date_format(ts, 'EEEE, d MMM yy h a')|date_format(da, 'D q MMMM')
date_format(ts, 'k K L LLL XXX Z')|date_trunc('WEEK', ts)|date_trunc('QUARTER', ts)|date_trunc('MILLISECOND', ts)
date_trunc('mm', da)|trunc(da, 'MM')|trunc(ts, 'year')|trunc(da, 'WEEK')|trunc(da, 'bad')|dayname(da)|dayname(ts)
monthname(ts)|year(ts)|quarter(da)|month(ts)|day(ts)|hour(ts)|minute(ts)|second(ts)|dayofyear(da)|dayofweek(ts)
weekday(da)|weekofyear(ts)|extract(YEAROFWEEK FROM ts)|extract(SECOND FROM ts)|extract(DOW FROM ts)
extract(DOW_ISO FROM da)|extract(DOY FROM ts)|extract(WEEK FROM da)|extract(MONTHS FROM ts)|date_part('SECONDS', ts)
date_part('YEAROFWEEK', da)|extract(D FROM ts)|extract(QTR FROM ts)|extract(MIN FROM ts)|extract(HRS FROM ts)
timestampadd(HOUR, k, ts)|timestampadd(MONTH, i, ts)|dateadd(WEEK, -k, ts)|timestampadd(QUARTER, k, da)
timestampdiff(DAY, ts, TIMESTAMP '2024-01-01 00:00:00')|timestampdiff(MONTH, ts, da)|timestampdiff(YEAR, da, ts)
date(p)|timestamp(p)|da + k|da - 3|k + da|timestampdiff(MONTH, ts, TIMESTAMP '2021-03-01 00:00:00')
timestampdiff(MONTH, TIMESTAMP '2021-03-01 12:00:00', ts)
timestampdiff(MINUTE, ts, da)|timestampdiff(QUARTER, TIMESTAMP '2001-05-31 12:00:00', ts)|datediff(WEEK, ts, da)
year(p)|hour(p)|last_day(p)|convert_timezone('Europe/Paris', 'Asia/Kolkata', ts)
"""
NESTED = """
array_contains(l, 2)|array_contains(ls, t)|array_contains(lx, x)|array_position(l, 3)|array_position(ls, s)
array_distinct(l)|array_distinct(lx)|array_distinct(ls)|array_distinct(ll)|array_union(l, array(1, 7))
array_union(ls, split(s, ','))|array_intersect(l, array(3, 1, NULL))|array_except(l, array(1))
array_except(lx, array(CAST(0 AS DOUBLE), x))|arrays_overlap(l, array(2, NULL))|arrays_overlap(ls, array(s, t))
arrays_zip(l, ls)|arrays_zip(l, array(1, 2))|array_join(ls, '-')|array_join(ls, t, '?')|array_join(l, ',', 'x')
array_min(l)|array_max(l)|array_max(lx)|array_min(ls)|array_remove(l, 1)|array_remove(l, k)|array_compact(l)
array_compact(ls)|array_repeat(s, k - 1)|array_repeat(l, 2)|array_append(l, k)|array_append(ls, NULL)
array_prepend(l, 0)|array_insert(l, 2, k)|array_insert(l, -1, 9)|array_insert(ls, 5, t)|array_insert(l, -5, 0)
slice(l, 2, 2)|slice(ls, -2, 5)|slice(l, k + 1, 1)|concat(l, l)|concat(l, array(k))|flatten(ll)|flatten(array(l, l))
sequence(k, 3)|sequence(1, k + 1, 1)|sequence(k, k + 6, 2)|sequence(DATE '2024-01-30', date_add(DATE '2024-01-30', k))
sequence(DATE '2024-01-31', date_add(DATE '2024-02-28', 9 * k), INTERVAL 1 MONTH)
sequence(TIMESTAMP '2024-03-31 12:00:00', TIMESTAMP '2021-01-31 11:00:00', INTERVAL '-5' MONTH)
size(l)|size(m)|cardinality(ls)|array_size(l)|sort_array(l)|sort_array(l, false)|sort_array(lx)|sort_array(ls, false)
sort_array(ll)
array_sort(l)|array_sort(lx)|array_sort(l, (a, c) -> coalesce(c, 0) - coalesce(a, 0))|reverse(l)|reverse(ls)
element_at(l, 1)|element_at(l, -1)|element_at(ls, k + 1)|element_at(m, 'k')|element_at(m, t)|try_element_at(l, 9)
get(l, k)|l[k]|map_keys(m)|map_values(m)|map_entries(m)|map_from_arrays(array('a', 'b'), array(i, k))
map_from_entries(map_entries(m))|map_concat(m, map('zz', k))|map_contains_key(m, 'k')|map_contains_key(m, t)
map_filter(m, (q, v) -> v > 1)|transform_keys(m, (q, v) -> concat(q, '!'))|transform_values(m, (q, v) -> v + k)
transform(l, v -> v + k)|transform(l, (v, j) -> v * j)|transform(ls, v -> upper(v))|transform(ls, v -> concat(v, s))
transform(ll, v -> size(v))|transform(ll, v -> transform(v, q -> q + k + size(v)))|filter(l, v -> v > 1)
filter(l, (v, j) -> j > 0)|filter(ls, v -> v IS NOT NULL)|exists(l, v -> v = 2)|exists(l, v -> v > k)
forall(l, v -> v > 0)|forall(ls, v -> length(v) > 0)|aggregate(l, 0, (acc, v) -> acc + coalesce(v, 0))
aggregate(l, 0, (acc, v) -> acc + v, acc -> acc * 10)|aggregate(ls, '', (acc, v) -> concat(acc, coalesce(v, '-')))
reduce(l, k, (acc, v) -> greatest(acc, v))|zip_with(l, l, (a, c) -> a + c)|zip_with(l, ls, (a, c) -> concat(a, c))
nullif(l, array(1, 2))|transform(array(st), v -> v.a)|st.a|m['k']
"""
EDGES = r"""
upper('ß ŉ ﬁ ᾳ')|lower('İ ΑΣ')|initcap('ß İ ΑΣ ﬁx')|upper(concat(s, 'ß'))|lower(concat(s, 'Σ'))|locate('', s, k)
locate('', s, 99)|instr(s, '')|format_string('%x %X %o', n, n, n)|format_string('%x', i)|pmod(n, -1)|n % -1|pmod(n, n)
x = f|x < f|x > f|x <= f|x >= f|x <> f|x <=> f|x IN (f, 1.5)|x NOT IN (f)|x BETWEEN -1.5 AND f|greatest(x, f)
least(x, f)|nullif(x, f)|CASE x WHEN f THEN 1 ELSE 0 END|decode(x, f, 1, 0)|x > 1.5|1.5e0 < x|x = CAST('NaN' AS DOUBLE)
map(CAST('NaN' AS DOUBLE), 1)[x]|round(x, 2)|bround(x, 1)|round(y * 1000, 2)|bround(y, 3)|round(y, -1)|round(f, 1)
round(1.005e0, 2)|round(0.285e0, 2)|round(n / 3e0, 4)|CAST(d AS DOUBLE)|CAST(w AS DOUBLE)|d + x|CAST(d AS FLOAT)
typeof(NULL + NULL)|typeof(NULL div NULL)|typeof(- NULL)|typeof(~NULL)|typeof(NULL & NULL)|typeof(NULL << 1)
try_mod(1, NULL)|try_add(NULL, i)|pmod(x, n)|pmod(y, 4611686018427387904)|bit_get(CAST(NULL AS INT), -1)
str_to_map('a1b22c:d', '[0-9]+', ':')|str_to_map('a--1,b-2', ',', '-+')|str_to_map('a:1|b:2', '\\|', ':')
ts - greatest(ts, ts)|least(ts, ts) - ts > INTERVAL 0 DAYS|CAST(make_dt_interval(1, 2, 3, x) AS STRING)
CAST(make_dt_interval(0, 0, 0, w) AS STRING)|element_at(if(k > 9, l, NULL), 0)|slice(if(k > 9, l, NULL), 0, -1)
timestampadd(HOUR, n, CAST(NULL AS TIMESTAMP))|add_months(CAST(NULL AS DATE), 2147483647)
str_to_map(left(s, 1), ',', '')|str_to_map('abc', '', ':')|str_to_map('', ',', ':')|str_to_map('ab,c', ',', '')
typeof(NULL + DATE '2024-01-01')|typeof(NULL + 1)|typeof(NULL * 1.5)|typeof(NULL / 1)|repeat(s, -1)|space(-1)
lpad(s, -1)|rpad(s, 3, '')|substring(s, 0)|substring(s, -2, 1)|substring(s, 2, -1)|substring(s, -10, 8)
from_json("{'a':1, \"b\":'x'}", 'a INT, b STRING')|get_json_object("{'a':1}", '$.a')
from_json('{"a":1}', 'ARRAY<STRUCT<a: INT>>')|from_json('{"a":1}', 'ARRAY<INT>')|from_json('[{"a":1}]', 'a INT')
from_json('{"a":"NaN","b":"-INF","c":"inf"}', 'a DOUBLE, b DOUBLE, c DOUBLE').a|from_json('{"a":1,"a":2}', 'a INT')
"""
FAMILY_TEXTS = {
    "text": TEXT, "encodings": ENCODINGS, "numbers": NUMBERS, "times": TIMES, "nested": NESTED, "edges": EDGES,
}  # fmt: skip


def cut(line: str) -> list[str]:
    """The expressions of a line, which | parts outside of quotes."""
    parts, quoted = [""], False
    for letter in line:
        quoted ^= letter == "'"
        if letter == "|" and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def columns() -> pa.RecordBatch:
    draw = random.Random(SEED)

    def some(make: Any) -> list[Any]:
        return [None if draw.random() < 0.08 else make() for _ in range(ROWS)]

    def of(*values: Any) -> list[Any]:
        return some(lambda: draw.choice(values))

    def number() -> float:
        special = [0.0, -0.0, 1.0, -1.5, 2.5, 0.5, 1e15, -1e-7, math.nan, math.inf, -math.inf]
        return draw.choice([*special, draw.uniform(-1e4, 1e4)])

    def time() -> dt.datetime:
        changes = [dt.datetime(2024, 3, 10, 7, tzinfo=UTC), dt.datetime(2024, 11, 3, 6, tzinfo=UTC)]
        changes += [dt.datetime(2024, 3, 31, 1, tzinfo=UTC), dt.datetime(2023, 10, 29, 1, tzinfo=UTC)]
        near = draw.choice(changes) + dt.timedelta(minutes=draw.randint(-400, 400))
        far = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=draw.randint(-(10**15), 2 * 10**15))
        ends = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
        ends += [dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC), dt.datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
        return draw.choice([near, far, *ends])

    def date() -> dt.date:
        return draw.choice([dt.date(2024, 2, 29), dt.date(1969, 12, 31), time().date(), dt.date(2023, 1, 31)])

    doubles = [[], [1.5, math.nan, None], [0.0, -0.0], [math.nan, math.nan, -1.0], [x := 2.5, x]]
    texts = [[], ["a", "b"], [None, "X", "a"], ["a", "a", None], ["日本", ""]]
    numbers = [[], [1, 2], [None, 3], [1, 1, 3, None], [5, -2, 7, 0], [None]]
    small = pa.list_(pa.int32())
    entries = [[], [("k", 1), ("a", 2)], [("k", None)], [("X", 5), ("", 0)]]
    return pa.record_batch(
        {
            "s": pa.array(of(*WORDS), pa.string()),
            "t": pa.array(of("a", "b", "X", ",", "", "ab", "mo"), pa.string()),
            "u": pa.array(of(*URLS), pa.string()),
            "p": pa.array(of(*TIMES_AS_TEXT), pa.string()),
            "z": pa.array(of(*ZONES), pa.string()),
            "i": pa.array(some(lambda: draw.choice([0, 1, -1, 15, 25, draw.randint(-2000, 2000)])), pa.int32()),
            "n": pa.array(
                some(lambda: draw.choice([0, 7, 2**62, -(2**63), draw.randint(-(10**12), 10**12)])), pa.int64()
            ),
            "k": pa.array(some(lambda: draw.randint(0, 4)), pa.int32()),
            "x": pa.array(some(number), pa.float64()),
            "y": pa.array(some(lambda: draw.uniform(-3, 3)), pa.float64()),
            "f": pa.array(of(0.0, -0.0, 1.5, math.nan, math.inf), pa.float32()),
            "d": pa.array(some(lambda: Decimal(draw.randint(-99999, 99999)).scaleb(-2)), pa.decimal128(10, 2)),
            "w": pa.array(some(lambda: Decimal(draw.randint(-(10**26), 10**26)).scaleb(-10)), pa.decimal128(38, 10)),
            "ts": pa.array(some(time), pa.timestamp("us", tz="UTC")),
            "da": pa.array(some(date), pa.date32()),
            "b": pa.array(of(b"", b"\x00\xff", b"text"), pa.binary()),
            "l": pa.array(of(*numbers), small),
            "ls": pa.array(of(*texts), pa.list_(pa.string())),
            "lx": pa.array(of(*doubles), pa.list_(pa.float64())),
            "ll": pa.array(of([], [[1], [2, 3]], [[], [4]], [[1], None], [[1], [1]]), pa.list_(small)),
            "m": pa.array(of(*entries), pa.map_(pa.string(), pa.int32())),
            "st": pa.array(some(lambda: {"a": draw.randint(0, 3)}), pa.struct([("a", pa.int32())])),
        }
    )


def alike(ours: Any, theirs: Any) -> bool:
    """Equal, with fractions to the last digits; a map in any order of its keys."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(alike(*pair) for pair in zip(ours, theirs, strict=True))
    if isinstance(ours, dt.datetime) and isinstance(theirs, dt.datetime):
        return ours.replace(tzinfo=UTC) == theirs.replace(tzinfo=UTC)
    return same(ours, theirs)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILY_TEXTS)
def test_functions_have_the_types_and_values_of_spark_on_spark(family: str, spark_session: Any) -> None:
    texts = [text for line in FAMILY_TEXTS[family].strip().splitlines() for text in cut(line)]
    assert unlike_spark(spark_session, columns(), texts) == []


@pytest.mark.spark
@pytest.mark.slow
def test_the_examples_of_functions_are_those_of_spark_on_spark(spark_session: Any) -> None:
    texts = [each.example for family in FAMILIES.values() for each in family if each.name not in NOT_OF_SPARK]
    assert len(texts) > 200
    assert unlike_spark(spark_session, columns().slice(0, 1), texts) == []


def unlike_spark(session: Any, rows: pa.RecordBatch, texts: list[str]) -> list[Any]:
    """The expressions of which types or values differ, each with two pairs of values that do."""
    theirs, wrong = in_spark(session, rows, texts), []
    for number, text in enumerate(texts):
        found, expected = bind_expression(text, rows.schema).over(rows), theirs.column(number)
        pairs = zip(found.to_pylist(), expected.to_pylist(), strict=True)
        unlike = [pair for pair in pairs if not alike(*pair)]
        kinds = [sql_name(found.type), sql_name(expected.type).replace("timestamp[us]", "TIMESTAMP")]
        if unlike or kinds[0] != kinds[1]:
            wrong.append((text, *kinds, unlike[:2]))
    return wrong
