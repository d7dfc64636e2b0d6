"""Text into statements, before any name is looked up.

    statements/     what is read, as frozen data; expressions are sqlglot's trees
    text/           tokens, the cursor over them, places, lengths of time
    script_parser   whole statements: `parse_script`, `parse_expression`
    stream_parser   CREATE STREAM and CREATE SINK
    table_parser    CREATE TABLE and REFRESH TABLE
    code_parser     CREATE AGGREGATE and CREATE FUNCTION
    request_parser  CREATE, ADD, ALTER and DROP QUERY; SHOW, DESCRIBE, EXPLAIN, SET
    select_parser   queries: common tables, select lists, clauses, UNION, ORDER BY
    from_parser     FROM: inputs, joins, sequences
    explode_parser  LATERAL VIEW and UNNEST
    window_parser   windows in brackets, WINDOW i, TUMBLE, HOP and SESSION
    unsupported     forms of other systems that are refused by name

Every parser has a cursor, none inherits from another. Sqlglot reads expressions; statements and clauses are ours
(docs/decisions/0034 says why).
Comes in: text. Goes out: statements, or a `QueryError` at its place. Imported by all other parts of the language.
"""
