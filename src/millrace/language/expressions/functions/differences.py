"""Where functions and operators mean something else than in Spark; the documentation is made of this table.

The yardstick is Spark with `spark.sql.ansi.enabled=false`, in UTC.
"""

from __future__ import annotations

DIFFERENCES: tuple[tuple[str, str, str], ...] = (
    (
        "integer overflow; overflow of a decimal",
        "fails the run; `try_add` and the like give null",
        "wraps around; null",
    ),
    (
        "`CAST` of a number that does not fit, of `NaN` or of infinity to a whole number, also in `floor` and `ceil`",
        "null",
        "wraps around, or the greatest number; 0 for `NaN`",
    ),
    ("`TRY_CAST`", "means what `CAST` means", "is stricter: `TRY_CAST('1.5' AS INT)` is null"),
    ("a text literal beside another type: `n = 'abc'`", "refused", "null"),
    ("the sign of a zero in `sign(-0.0e0)` and in sets of arrays", "may be either", "may be the other"),
    ("`a % b` of decimals that need more than 37 digits at one scale", "fails the run", "computes it"),
    (
        "`a + b` of decimals of which one has 38 digits before the point, the other 38 after it",
        "refused",
        "computes it",
    ),
    ("`CAST(bytes AS STRING)` of bytes that are no UTF-8", "has U+FFFD for them", "keeps the bytes"),
    ("`substring(text, -2147483648)`", "the whole text", "without its last characters"),
    ("`CAST('1d' AS DOUBLE)`: a letter of Java's behind a number", "null", "1.0"),
    ("regular expressions", "those of RE2 and Python's `re`", "Java's: `\\p{…}` knows more classes"),
    ("empty matches beside characters beyond U+FFFF", "characters stay whole", "surrogates are parted"),
    ("`to_char` of a time", "takes PostgreSQL's patterns", "takes those of `date_format`"),
    ("a pattern of a time", "a constant; without `e`, `F`, `G`, `W`, `w`", "any text"),
    (
        "`unix_timestamp` and `to_unix_timestamp` before 1970",
        "are cut off downwards, as `unix_seconds` is",
        "are cut off towards 1970",
    ),
    (
        "`unix_timestamp` and `to_unix_timestamp` of a text without a pattern",
        "read all spellings of a time",
        "read `yyyy-MM-dd HH:mm:ss` only",
    ),
    ("`timestamp_seconds` and `CAST` of a `DOUBLE` as `TIMESTAMP`", "to the nearest microsecond", "cut off"),
    ("`convert_timezone`", "gives a `TIMESTAMP` that shows the other clock", "gives a `TIMESTAMP_NTZ`"),
    ("years before 1 and beyond 9999", "not supported: null, of functions that make a time of a number", "supported"),
    ("the last digit of `exp`, `ln`, `power`, `sinh` and other functions of fractions", "that of C", "that of Java"),
    ("`DECIMAL '1.50'` and `INT '1'`", "1.50 and 1", "refused"),
    (
        "`LATERAL VIEW explode(a) t AS a` where the rows have a column `a`",
        "refused: give the element another name",
        "allowed; `t.a` is the element",
    ),
    ("a `MAP` as a key of groups", "refused: take its values out of it", "allowed"),
    ("`from_json` as a `MAP` of an object that has a key twice", "keeps the last", "keeps both"),
    ("`get_json_object` and `text:a` of an object that has a key twice", "the last", "the first"),
    ("JSON with more text after its value, or `+Infinity`", "malformed", "read, without what comes after it"),
    (
        "`from_json` of a number as a `TIMESTAMP`, or of a text such as `1,000.5` as a `DECIMAL`",
        "null",
        "seconds since 1970; 1000.5",
    ),
    ("`from_json` as a `MAP` with keys that are no texts", "reads them", "refused"),
    (
        "`NULL` without a type in `size`, `map_keys`, `bit_count`, `greatest`, `from_json`, `to_json` and `NULL[0]`",
        "refused: write `CAST(NULL AS …)`",
        "null",
    ),
    ("`zeroifnull(NULL)`", "a `DOUBLE`", "an `INT`"),
    ("`unbase64` of a text that is no base 64", "reads what it can", "fails"),
    ("`map()`, `map_concat()`, `concat()` and `struct()` of nothing", "refused", "empty values"),
    ("`aggregate` whose start has another type than its elements make of it", "takes the common type", "refused"),
    ("`get_json_object` with `*` in its path", "refused", "an array"),
    ("`approx_percentile`", "a `DOUBLE` within 1 %, whatever the rows", "the type of the column, a value of the rows"),
    (
        "`histogram_numeric`",
        "of all rows, the closest bins become one",
        "row by row, so that it depends on their order and partitions",
    ),
    (
        "`collect_list`, `collect_set`, `string_agg`, `first`, `last`, `any_value`",
        "by the rows' times, then by value",
        "as the rows happen to come",
    ),
    (
        "intervals",
        "`DAY TO SECOND` and `YEAR TO MONTH`; `DATE + INTERVAL 1 DAY` is a `TIMESTAMP`; no `make_interval`",
        "a type per range of units; a `DATE`",
    ),
    ("`CAST` of text that is no interval", "null", "fails"),
    (
        "a text of a time with the name of a zone (`… Europe/Berlin`), or without its day",
        "null; write `to_utc_timestamp(text, zone)`",
        "read; the current day",
    ),
    ("a text of a time with a zone but without seconds: `2024-05-01 10:30Z`", "read", "null"),
)
"""What, how it is here, how it is in Spark."""
