"""Outside bytes <-> batches: where rows of streams come from, and files that results go to.

- `stream_input` is what a host reads: a stream in chunks, from a position that can be kept. `inputs` opens one: files,
  generated rows, or rows fed from Python (`feed_input`; `fed_rows` brings them to the declared columns).
- `push_pull` has the sources that a run asks for rows, `pushed` those that a program pushes rows into.
- `source` is the contract of a source, which users write too: partitions with positions. `opened_source` opens one, and
  `partitioned_input` reads it for a host. `kafka/` reads topics so, `formats/` makes rows of messages.
- `native` names the connectors that are ours; all others are Spark's own, and only the Spark host has them.
- `sink_index` says which sinks are written by a writer: the user's own, those shipped, those of installed packages.
- `retries` says when a writer tries again what another system did not take.
- `files/` reads and writes csv, json and parquet; `generators/` makes rows: `generate` and `nexmark`.
- `postgres/` writes results to PostgreSQL, and reads tables from it; `kafka/` writes results to Kafka.

In: a `Stream` or `Sink` of the plan with its options. Out: Arrow record batches in the declared schema, or files.
Rows that do not fit the schema are malformed: they raise an error or are counted, and never pass silently.
Hosts and commands import this package; it imports the plan's endpoints and the kernel's columns, and no host.
"""
