"""The values of messages <-> rows: one message is one row.

- `decoded` is the contract: values in; good rows, which values they are, and what is wrong with the others out.
- `decoders` opens the decoder that options name: `json_messages`, `csv_messages`, `raw_messages`; `avro_messages`
  and `protobuf_messages` read records, which `record_messages` makes rows of.
- `debezium_messages` reads changes of tables, a json of its own.
- `schema_registry` has schemas by number, for messages that name theirs; `protobuf_schemas` those of Protobuf, by
  number and place.

A message without a value is a row whose columns are null. Connectors import this package; it imports `files/`, where
texts become columns.
"""
