"""Counts of a topic of Kafka, per page and minute. It brings a broker of its own, which the client makes in memory.

For a broker of yours, replace `memory_broker()` by its address, and put your messages into the topic "clicks".
"""

import json

from confluent_kafka import Producer

import millrace as mr


def memory_broker() -> tuple[Producer, str]:
    """A producer with a broker in this process, and the broker's address."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    return producer, f"{broker.host}:{broker.port}"


def main() -> None:
    producer, address = memory_broker()
    for number in range(240):
        click = {"page": f"/{number % 3}", "ts": f"2026-01-01T12:{number // 60:02d}:{number % 60:02d}"}
        producer.produce("clicks", key=click["page"], value=json.dumps(click))
    producer.produce("clicks", value="no JSON")
    producer.flush(10)

    net = mr.Network(variables={"address": address})
    net.sql(
        """
        CREATE STREAM clicks (page STRING, ts TIMESTAMP)
          TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
          FROM kafka OPTIONS (bootstrap_servers '${address}', topic 'clicks', format 'json', start 'earliest',
                              on_malformed 'skip');

        CREATE QUERY per_minute AS
          SELECT window_start, page, count(*) AS n
          FROM clicks [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY page;
        """
    )
    handle = net.run(on="local", until="end")
    counted = handle.results("per_minute").sort_by([("window_start", "ascending"), ("page", "ascending")])
    for row in counted.to_pylist():
        print(f"{row['window_start']:%H:%M} {row['page']} {row['n']}")
    print("set aside:", handle.metrics().sources["clicks"].quarantined)


if __name__ == "__main__":
    main()
