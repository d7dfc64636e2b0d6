"""Kafka: results as messages of a topic, each once.

- `kafka_client`       what every client of Kafka needs: its settings, and errors in plain words
- `message_options`    the options of a sink, checked against the columns of its query
- `outgoing_messages`  rows as messages: key, value, headers, timestamp; tombstones
- `kafka_writer`       `KafkaWriter`: the messages of an epoch and the note that it has been taken, in one transaction

In: options whose references have been looked up, an Arrow schema, record batches. Out: messages. It needs the package
confluent-kafka (extra `kafka`), which it imports when a client is made.
"""
