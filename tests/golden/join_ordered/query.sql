-- Joined rows in order of time, by every method.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY by_default AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  ORDER BY greatest(o.ts, p.ts);
CREATE QUERY order_agnostic AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  ORDER BY greatest(o.ts, p.ts) WITH (join = 'oop');
CREATE QUERY sync_filter AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  ORDER BY greatest(o.ts, p.ts) WITH (join = 'sync_filter');
CREATE QUERY filter_order AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  ORDER BY greatest(o.ts, p.ts) WITH (join = 'filter_order');
CREATE QUERY adaptive AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  ORDER BY greatest(o.ts, p.ts) WITH (join = 'adaptive', alpha = 0.1);
CREATE QUERY in_order_within AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM purchases [RANGE 15 SECONDS] AS o, payments [RANGE 15 SECONDS] AS p WHERE o.client = p.client
  WITH (baseline = 'in_order');
