"""CREATE statements and options, bound.

    streams         CREATE STREAM and CREATE SINK: columns, keys, options, late rows
    computed_columns columns of a stream that are computed of the others
    declared_tables CREATE TABLE: columns, primary key, source
    contracts       the time contract of a stream: order, partitions, enabling timestamps
    partitions      partitions that are declared ahead, and the grace for others
    user_code       CREATE FUNCTION and CREATE AGGREGATE
    query_options   WITH of a query: known keys, checked values, baselines
    released_rows   the option released of a query, which adds what let its rows leave
    future_guard    the option max_future_skew of a query, which guards its streams

Comes in: statements of the grammar. Goes out: streams and sinks of the plan, functions and aggregates of users, options
as text. Imported by updates and script.
"""
