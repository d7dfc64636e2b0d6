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
        "`CAST` of a number that does not fit, also in `floor` and `ceil`",
        "null",
        "wraps around, or the greatest number",
    ),
    ("`TRY_CAST`", "means what `CAST` means", "is stricter: `TRY_CAST('1.5' AS INT)` is null"),
    ("a text literal beside another type: `n = 'abc'`", "refused", "null"),
    ("`round` and `bround` of a `DOUBLE`", "work on doubles", "work on decimals"),
    ("`a % b` of decimals that need more than 37 digits at one scale", "fails the run", "computes it"),
    (
        "`a + b` of decimals of which one has 38 digits before the point, the other 38 after it",
        "refused",
        "computes it",
    ),
    (
        "`NaN` in comparisons, `least`, `greatest`",
        "equal to nothing; passed over",
        "equal to itself, above all numbers",
    ),
    ("`CAST(bytes AS STRING)` of bytes that are no UTF-8", "has U+FFFD for them", "keeps the bytes"),
    ("`upper('ß')`", "`ẞ`", "`SS`"),
    ("regular expressions", "those of RE2 and Python's `re`", "Java's: `\\p{…}` knows more classes"),
    ("empty matches beside characters beyond U+FFFF", "characters stay whole", "surrogates are parted"),
    ("`to_char` of a time", "takes PostgreSQL's patterns", "takes those of `date_format`"),
    ("a pattern of a time", "a constant; without `e`, `F`, `G`, `W`, `w`", "any text"),
    ("`unix_timestamp` before 1970", "is cut off downwards", "is cut off towards 1970"),
    ("`timestamp_seconds` and `CAST` of a `DOUBLE` as `TIMESTAMP`", "to the nearest microsecond", "cut off"),
    ("`convert_timezone`", "gives a `TIMESTAMP` that shows the other clock", "gives a `TIMESTAMP_NTZ`"),
    ("years before 1 and beyond 9999", "not supported", "supported"),
    ("a `MAP` as a key of groups", "refused: take its values out of it", "allowed"),
    ("a map with a key twice, or with the key null", "fails the run", "fails the run; `from_json` keeps the last"),
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
