-- Rows of two streams that match by keys and by time, in all the ways to say so.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY band AS
  SELECT o.id, o.item, p.amount, unix_timestamp(p.ts) - unix_timestamp(o.ts) AS after, o.ts AS ordered, p.ts AS paid
  FROM purchases AS o JOIN payments AS p ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 SECONDS;
CREATE QUERY both_ways AS
  SELECT o.id, p.order_id, p.amount FROM purchases AS o, payments AS p
  WHERE o.client = p.client AND o.ts >= p.ts - INTERVAL 12 SECONDS AND o.ts < p.ts + INTERVAL 3 SECONDS AND p.amount > o.id;
CREATE QUERY windows AS
  SELECT * FROM purchases [RANGE 12 SECONDS WA ts] AS o, payments [RANGE 2 SECONDS] AS p WHERE o.client = p.client;
CREATE QUERY one_window AS
  SELECT o.id, p.amount FROM purchases AS o, payments AS p WHERE o.client = p.client WINDOW 5 SECONDS;
CREATE QUERY by_using AS
  SELECT o.id, p.order_id FROM purchases AS o JOIN payments AS p USING (client) WHERE p.ts = o.ts;
CREATE QUERY same_minute AS
  SELECT o.id, p.amount FROM purchases AS o JOIN payments AS p
  ON o.client = p.client AND date_trunc('minute', o.ts) = date_trunc('minute', p.ts);
CREATE QUERY same_ten_seconds AS
  SELECT o.id, p.amount FROM purchases AS o JOIN payments AS p
  ON unix_seconds(o.ts) div 10 = unix_seconds(p.ts) div 10;
CREATE QUERY with_itself AS
  SELECT x.id AS earlier, y.id AS later FROM purchases AS x, purchases AS y
  WHERE x.client = y.client AND y.ts > x.ts AND y.ts <= x.ts + INTERVAL 1 MINUTE;
