-- Inputs of a join may be unions, queries, and aggregates of windows.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');
CREATE STREAM parcels (id BIGINT, order_id BIGINT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'inputs/parcels.csv');

CREATE QUERY of_windows AS
  SELECT o.window_start, o.n AS orders, p.n AS payments
  FROM (SELECT window_start, window_end, count(*) AS n FROM purchases [RANGE 30 SECONDS SLIDE 30 SECONDS]) AS o
  JOIN (SELECT window_start, window_end, count(*) AS n FROM payments [RANGE 30 SECONDS SLIDE 30 SECONDS]) AS p
  ON o.window_start = p.window_start AND o.window_end = p.window_end;
CREATE QUERY of_unions AS
  SELECT m.id, p.amount
  FROM (SELECT id, ts FROM purchases UNION SELECT order_id AS id, ts FROM parcels) AS m, payments AS p
  WHERE m.id = p.order_id AND p.ts BETWEEN m.ts - INTERVAL 10 SECONDS AND m.ts;
CREATE QUERY highest AS
  SELECT p.client, p.amount, p.ts AS paid
  FROM payments AS p JOIN (SELECT window_end, max(amount) AS amount FROM payments [RANGE 30 SECONDS SLIDE 30 SECONDS]) AS w
  ON p.amount = w.amount AND p.ts >= w.window_end - INTERVAL 30 SECONDS AND p.ts < w.window_end;
