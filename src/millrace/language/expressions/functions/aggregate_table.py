"""Aggregate functions: the declarations. Examples are over the rows of `example_rows`, a second apart."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from millrace.language.expressions.functions.declaration import Function, declared


@cache
def example_rows() -> pa.RecordBatch:
    """The rows of the examples; made when asked for: pyarrow loads pandas with its first value."""
    return pa.record_batch(
        {
            "x": pa.array([1, 2, 2, 4, None], pa.int32()),
            "y": pa.array([1.5, 2.5, 4.0, 8.0, None], pa.float64()),
            "s": pa.array(["a", "b", "b", "c", None], pa.string()),
            "ok": pa.array([True, True, False, True, None], pa.bool_()),
        }
    )


AGGREGATES: tuple[Function, ...] = declared("""
count(value ANY...) BIGINT
    How many rows there are, or how many where no value is null
    count(x)
    forms: count(*), count(DISTINCT a, b)
count_if(condition BOOLEAN) BIGINT
    In how many rows a condition holds
    count_if(x > 1)
    kernel: count
sum(value NUMBER) NUMBER
    The sum of the numbers or intervals
    sum(x)
try_sum(value NUMBER) NUMBER
    As sum, null where the sum of whole numbers needs more than 64 bits
    try_sum(x)
    kernel: sum
avg(value NUMBER) DOUBLE
    The mean of the numbers or intervals
    avg(x)
    also: mean
try_avg(value NUMBER) DOUBLE
    As avg, where the sum of whole numbers needs more than 64 bits too
    try_avg(x)
    kernel: avg
min(value T) T
    The least value
    min(y)
max(value T) T
    The greatest value; NaN is greater than all numbers
    max(struct(s, y))
first(value ANY[, ignore_nulls BOOLEAN]) ANY
    The value of the first row by time
    first(s)
    also: first_value, any_value
    forms: first(value) IGNORE NULLS
last(value ANY[, ignore_nulls BOOLEAN]) ANY
    The value of the last row by time
    last(x, true)
    also: last_value
    forms: last(value) IGNORE NULLS
max_by(value ANY, by T) ANY
    The value of the row where another one is greatest
    max_by(s, y)
    also: arg_max
min_by(value ANY, by T) ANY
    The value of the row where another one is least
    min_by(s, y)
    also: arg_min
mode(value T[, deterministic BOOLEAN]) T
    The most frequent value, the least of equally frequent ones
    mode(x)
    forms: mode() WITHIN GROUP (ORDER BY value DESC)
collect_list(value ANY) ARRAY
    The values that are not null as an array, by the times of their rows
    collect_list(x)
    also: array_agg
    forms: collect_list(value) RESPECT NULLS
collect_set(value T) ARRAY
    Each value that is not null once, by the time of the first row that has it
    collect_set(x)
    forms: array_agg(DISTINCT value)
string_agg(value TEXT[, separator TEXT]) TEXT
    The values that are not null as one text, by the times of their rows or in another order
    string_agg(s, ',')
    also: listagg
    forms: listagg(value, ',') WITHIN GROUP (ORDER BY other DESC)
bool_and(condition BOOLEAN) BOOLEAN
    True if a condition holds in all rows where it is not null
    bool_and(ok)
    also: every
bool_or(condition BOOLEAN) BOOLEAN
    True if a condition holds in some row
    bool_or(ok)
    also: any, some
bit_and(value WHOLE) WHOLE
    The bits that all whole numbers have
    bit_and(x)
bit_or(value WHOLE) WHOLE
    The bits that some whole number has
    bit_or(x)
bit_xor(value WHOLE) WHOLE
    The bits that an odd number of the whole numbers has
    bit_xor(x)
var_samp(value NUMBER) DOUBLE
    The variance of a sample
    var_samp(y)
    also: variance
var_pop(value NUMBER) DOUBLE
    The variance of all numbers
    var_pop(y)
stddev_samp(value NUMBER) DOUBLE
    The standard deviation of a sample
    stddev_samp(y)
    also: stddev, std
stddev_pop(value NUMBER) DOUBLE
    The standard deviation of all numbers
    stddev_pop(y)
skewness(value NUMBER) DOUBLE
    How unevenly the numbers lie around their mean
    skewness(y)
kurtosis(value NUMBER) DOUBLE
    How much of the spread comes from numbers far from the mean, 0 for normal ones
    kurtosis(y)
corr(one NUMBER, other NUMBER) DOUBLE
    The correlation of two columns, from -1 to 1
    corr(y, x)
covar_samp(one NUMBER, other NUMBER) DOUBLE
    The covariance of a sample
    covar_samp(y, x)
covar_pop(one NUMBER, other NUMBER) DOUBLE
    The covariance of all pairs
    covar_pop(y, x)
regr_slope(y NUMBER, x NUMBER) DOUBLE
    The slope of the line of least squares
    regr_slope(x, y)
regr_intercept(y NUMBER, x NUMBER) DOUBLE
    Where the line of least squares is at 0
    regr_intercept(x, y)
regr_r2(y NUMBER, x NUMBER) DOUBLE
    How much of the spread of y the line of least squares explains, from 0 to 1
    regr_r2(x, y)
regr_count(y NUMBER, x NUMBER) BIGINT
    How many pairs have no null
    regr_count(x, y)
    kernel: count
regr_avgx(y NUMBER, x NUMBER) DOUBLE
    The mean of x over the pairs without a null
    regr_avgx(x, y)
    kernel: avg
regr_avgy(y NUMBER, x NUMBER) DOUBLE
    The mean of y over the pairs without a null
    regr_avgy(x, y)
    kernel: avg
regr_sxx(y NUMBER, x NUMBER) DOUBLE
    The sum of the squared distances of x from its mean
    regr_sxx(x, y)
regr_syy(y NUMBER, x NUMBER) DOUBLE
    The sum of the squared distances of y from its mean
    regr_syy(x, y)
regr_sxy(y NUMBER, x NUMBER) DOUBLE
    The sum of the products of both distances
    regr_sxy(x, y)
percentile(value NUMBER, fraction DOUBLE) DOUBLE
    The number below which a fraction of the numbers lies, exact and interpolated; for an array of fractions an array
    percentile(y, array(0.25, 0.5))
median(value NUMBER) DOUBLE
    The percentile at 0.5
    median(y)
    kernel: percentile
percentile_cont(fraction DOUBLE) DOUBLE
    As percentile, of the numbers in the order of WITHIN GROUP
    percentile_cont(0.5) WITHIN GROUP (ORDER BY y DESC)
    kernel: percentile
percentile_disc(fraction DOUBLE) DOUBLE
    The first number, in the order of WITHIN GROUP, that at least a fraction of all numbers reach
    percentile_disc(0.5) WITHIN GROUP (ORDER BY y)
    kernel: percentile
approx_percentile(value NUMBER, fraction DOUBLE[, accuracy INT]) DOUBLE
    The number below which a fraction of the numbers lies, to within 1 % of it, and never outside of the numbers
    approx_percentile(y, 0.5)
    also: percentile_approx, approx_quantile
approx_count_distinct(value T) BIGINT
    About how many distinct values there are, with a standard error of 1.6 %
    approx_count_distinct(s)
histogram_numeric(value NUMBER, bins INT) ARRAY
    At most so many bins: the mean of the numbers in each, and how many they are
    histogram_numeric(y, 2)
""")
