-- Three streams on different keys: one join after the other.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');
CREATE STREAM parcels (id BIGINT, order_id BIGINT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'inputs/parcels.csv');

CREATE QUERY by_two_keys AS
  SELECT o.id, p.amount, s.id AS parcel
  FROM purchases AS o JOIN payments AS p ON o.client = p.client AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 20 SECONDS
    JOIN parcels AS s ON o.item = s.item AND s.ts BETWEEN o.ts AND o.ts + INTERVAL 30 SECONDS;
CREATE QUERY sent_or_not AS
  SELECT o.id, p.amount, s.id AS parcel
  FROM purchases AS o JOIN payments AS p ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 30 SECONDS
    LEFT JOIN parcels AS s ON p.order_id = s.order_id AND s.ts BETWEEN p.ts AND p.ts + INTERVAL 10 SECONDS;
