"""Orders counted per item and minute, as messages of Kafka, each once; then read as a consumer of committed messages.

pip install 'millrace[kafka]'
python examples/kafka_sink.py localhost:9092
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import millrace as mr

QUERIES = """
CREATE STREAM orders (id INT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'examples/data/orders.csv');

CREATE SINK minutes TO kafka OPTIONS (bootstrap_servers '${servers}', topic 'item-minutes', key 'item');

CREATE QUERY per_minute INTO minutes AS
  SELECT window_start, window_end, item, count(*) AS n FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY item;
"""


def main(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic("item-minutes", 1, 1)]).values()
    try:
        made.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    net = mr.Network(variables={"servers": servers})
    net.sql(QUERIES)
    net.run(on="local", until="end")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "example", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("item-minutes", 0, 0)])
    for message in consumer.consume(5, 30):
        print(message.key().decode(), message.value().decode(), sep="\t")
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
