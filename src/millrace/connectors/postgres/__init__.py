"""PostgreSQL: a sink that appends or upserts each epoch once, and rows of reference tables. Needs `millrace[postgres]`.

- `connection`       options to a connection; what goes wrong with a server, as errors of ours
- `sink_options`     the options of a sink, checked against the columns of its query
- `column_types`     which types of PostgreSQL take which column; columns as text that `COPY` reads
- `table_shape`      a table made from the columns of a query, or compared with them
- `postgres_writer`  `PostgresWriter`: the rows of an epoch and the note that it has been taken, in one transaction
- `table_rows`       the rows of a table for lookup joins

In: options whose references have been looked up, an Arrow schema, record batches. Out: rows in a table, or Arrow.
Hosts find the writer by its place (`sink_index`). psycopg is imported when a connection is made.
"""
