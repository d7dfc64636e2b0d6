"""Expressions, bound: names looked up, types known, and the relations that they are computed over.

    functions/         the scalar functions, declared with their arguments and an example
    sql_functions      the names of aggregates, ranks, fields of a time
    expression_binder  sqlglot's expressions -> the kernel's
    calls              function calls, those of users too
    special_calls, time_calls, lambda_calls, json_calls   functions that are bound in a way of their own
    typed              an expression with its type and place; casts and common types
    refused_expressions  forms and types of other systems
    type_advice        hints for values whose types do not fit
    scopes             the columns that expressions may name
    bound_relation     the rows of a part of a query: node, columns, and the columns that hold their time
    time_buckets       monotone functions of the time, which stand for windows
    zone_names         names of time zones
    progressing        attributes that are no TIMESTAMP, in terms of the times that they stand for

Comes in: expressions of `grammar.statements`. Goes out: `kernel.columns.expressions`. Imports the grammar, and no other
part of the language.
"""
