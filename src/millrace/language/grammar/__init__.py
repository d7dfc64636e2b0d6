"""Text into statements, before any name is looked up.

    dialect             text -> tokens: Spark's words with a few changes
    cursor              the tokens of a statement with a position, and what is wrong at it
    expression_reader   sqlglot's expressions with places; it and the cursor alone touch sqlglot's private parts
    script_parser       whole statements: `parse_script`, `parse_expression`
    stream_parser       CREATE STREAM and CREATE SINK
    code_parser         CREATE AGGREGATE and CREATE FUNCTION
    select_parser       queries: common tables, select lists, clauses, UNION, ORDER BY
    from_parser         FROM: inputs, joins, sequences
    window_parser       windows in brackets, WINDOW i, TUMBLE, HOP and SESSION
    unsupported         forms of other systems that are refused by name
    statements          what is read, as frozen data; expressions are sqlglot's trees
    places              where tokens and expressions stand in a text
    intervals           lengths of time in microseconds
    lengths             a length, or a number where rows progress by one

Every parser has a cursor, none inherits from another. Sqlglot reads expressions; statements and clauses are ours
(docs/decisions/0034 says why).
Comes in: text. Goes out: statements, or a `QueryError` at its place. Imported by all other parts of the language.
"""
