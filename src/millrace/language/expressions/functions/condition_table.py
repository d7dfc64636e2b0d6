"""Conditions, choices and types: the declarations."""

from __future__ import annotations

from millrace.language.expressions.functions.declaration import declared

CONDITIONS = declared("""
coalesce(value T...) T
    The first value that is not null
    coalesce(NULL, 2, 3)
nvl(value T, otherwise T) T
    The value, or another one where it is null
    nvl(NULL, 0)
    also: ifnull
    kernel: coalesce
nvl2(tested ANY, value T, otherwise T) T
    One value where the tested one is not null, else the other
    nvl2(NULL, 1, 2)
nullif(value ANY, other ANY) ANY
    Null where the two are equal, else the value
    nullif(2, 2)
    means: if(value = other, NULL, value)
nullifzero(number NUMBER) NUMBER
    Null where the number is zero, else the number
    nullifzero(0)
    means: if(number = 0, NULL, number)
zeroifnull(number NUMBER) NUMBER
    Zero where the number is null, else the number
    zeroifnull(CAST(NULL AS INT))
    means: coalesce(number, 0)
if(condition BOOLEAN, value T[, otherwise T]) T
    One value where a condition holds, else the other, or null
    if(1 < 2, 'a', 'b')
    also: iff
decode(value ANY, searched ANY[, result ANY...]) ANY
    The result after the first searched value that equals the value, else the last argument, or null
    decode(2, 1, 'one', 2, 'two', 'many')
    forms: decode(bytes, 'UTF-8') gives the text that bytes hold
isnull(value ANY) BOOLEAN
    True if the value is null
    isnull(NULL)
    also: is_null
    kernel: is_null
isnotnull(value ANY) BOOLEAN
    True if the value is not null
    isnotnull(1)
    also: is_not_null
    kernel: is_not_null
isnan(number DOUBLE) BOOLEAN
    True if the number is NaN, false if it is null
    isnan(CAST('NaN' AS DOUBLE))
equal_null(left T, right T) BOOLEAN
    True if the two are equal or both null, else false; as left <=> right
    equal_null(NULL, NULL)
    means: left <=> right
least(value T, other T...) T
    The least value; nulls do not count
    least(3, 1, 2)
greatest(value T, other T...) T
    The greatest value; nulls do not count
    greatest(3, 1, 2)
typeof(value ANY) STRING
    The type of the value
    typeof(array(1.5))
boolean(value ANY) BOOLEAN
    The value cast to BOOLEAN
    boolean('yes')
tinyint(value ANY) TINYINT
    The value cast to TINYINT
    tinyint('7')
smallint(value ANY) SMALLINT
    The value cast to SMALLINT
    smallint('7')
int(value ANY) INT
    The value cast to INT
    int('7')
bigint(value ANY) BIGINT
    The value cast to BIGINT
    bigint('7')
float(value ANY) FLOAT
    The value cast to FLOAT
    float('1.5')
double(value ANY) DOUBLE
    The value cast to DOUBLE
    double('1.5')
decimal(value ANY) DECIMAL(10, 0)
    The value cast to DECIMAL(10, 0)
    decimal('7')
string(value ANY) STRING
    The value cast to STRING
    string(1.5)
binary(value ANY) BINARY
    The value cast to BINARY
    binary('abc')
date(value ANY) DATE
    The value cast to DATE
    date('2024-05-01')
timestamp(value ANY) TIMESTAMP
    The value cast to TIMESTAMP
    timestamp('2024-05-01 12:30:00')
""")
