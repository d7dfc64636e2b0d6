-- Rows that match nothing are given too, when nothing can come any more that matches.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY unpaid AS
  SELECT o.id, o.client, p.amount FROM purchases AS o LEFT JOIN payments AS p
  ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 SECONDS;
CREATE QUERY unasked AS
  SELECT o.id, p.client, p.amount FROM purchases AS o RIGHT JOIN payments AS p
  ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 SECONDS;
CREATE QUERY everything AS
  SELECT o.id, o.ts AS ordered, p.order_id, p.ts AS paid FROM purchases AS o FULL OUTER JOIN payments AS p
  ON o.client = p.client AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 5 SECONDS AND p.amount > 3;
CREATE QUERY not_paid_at_all AS
  SELECT o.id FROM purchases AS o LEFT JOIN payments AS p
  ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 1 MINUTE WHERE p.order_id IS NULL AND o.item <> 'pad';
