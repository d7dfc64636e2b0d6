-- A column says until when a row matches; a row without one matches nothing.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY in_time AS
  SELECT o.id, o.expires, p.amount, p.ts AS paid FROM purchases AS o JOIN payments AS p
  ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.expires;
CREATE QUERY expired AS
  SELECT o.id, o.expires FROM purchases AS o LEFT JOIN payments AS p
  ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.expires WHERE p.amount IS NULL;
CREATE QUERY best AS
  SELECT o.ts, o.id, max(p.amount) AS amount, count(*) AS n FROM purchases AS o JOIN payments AS p
  ON o.client = p.client AND p.ts BETWEEN o.ts AND o.expires GROUP BY o.ts, o.id;
