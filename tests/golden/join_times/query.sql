-- An aggregate over a join goes by any of the times of its rows, or by both.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY by_order AS
  SELECT window_start, window_end, count(*) [RANGE 30 SECONDS SLIDE 30 SECONDS WA o.ts] AS n, sum(p.amount) AS amount
  FROM purchases AS o JOIN payments AS p ON o.client = p.client AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 20 SECONDS;
CREATE QUERY by_payment AS
  SELECT date_trunc('minute', p.ts) AS minute, o.client, count(*) AS n
  FROM purchases AS o JOIN payments AS p ON o.client = p.client AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 20 SECONDS
  GROUP BY date_trunc('minute', p.ts), o.client;
CREATE QUERY by_earlier AS
  SELECT least(o.ts, p.ts) AS at, count(*) AS n
  FROM purchases [RANGE 10 SECONDS] AS o, payments [RANGE 10 SECONDS] AS p GROUP BY least(o.ts, p.ts);
CREATE QUERY by_later AS
  SELECT greatest(o.ts, p.ts) AS at, count(*) AS n
  FROM purchases [RANGE 10 SECONDS] AS o, payments [RANGE 10 SECONDS] AS p GROUP BY greatest(o.ts, p.ts);
CREATE QUERY by_both AS
  SELECT o.ts AS ordered, p.ts AS paid, count(*) AS n, sum(p.amount) AS amount
  FROM purchases AS o JOIN payments AS p ON o.client = p.client AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 20 SECONDS
  GROUP BY o.ts, p.ts;
CREATE QUERY last_ten_seconds AS
  SELECT window_start, window_end, o.client, count(*) AS n FROM purchases AS o, payments AS p WHERE o.client = p.client WINDOW 10 SECONDS
  GROUP BY o.client;
