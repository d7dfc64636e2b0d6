"""Kafka: topics as streams, and results as messages of a topic, each once.

- `kafka_client`       what every client of Kafka needs: its settings, and errors in plain words
- `kafka_source`       `KafkaSource`: reads topics, as `connectors/source.py` says
- `kafka_options`      the options of a stream, checked
- `message_columns`    the columns of a message that are not in its value: key, headers, partition, offset, timestamp
- `message_options`    the options of a sink, checked against the columns of its query
- `outgoing_messages`  rows as messages: key, value, headers, timestamp; tombstones
- `kafka_writer`       `KafkaWriter`: the messages of an epoch and the note that it has been taken, in one transaction

In: options whose references have been looked up, an Arrow schema; record batches, or messages. Out: messages, or rows.
It needs the package confluent-kafka (extra `kafka`), which it imports when a client is made.
"""
