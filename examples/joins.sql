-- Orders, what was paid for them, and the prices in force: joins by time, as-of joins and sequences.
CREATE STREAM orders (id BIGINT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'examples/data/orders.csv');
CREATE STREAM payments (order_id BIGINT, cents BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'examples/data/payments.csv');
CREATE STREAM prices (item STRING, cents BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'examples/data/prices.csv');

-- Each order with its payments of the next three minutes, both ends included, or with nulls when nothing can come any more.
CREATE QUERY paid AS
  SELECT o.ts, o.id, o.item, p.cents, p.ts AS paid_at
  FROM orders o LEFT JOIN payments p
    ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 3 MINUTES;

-- Each order with the price in force when it was made: a price of the same instant counts.
CREATE QUERY priced AS
  SELECT o.ts, o.id, o.item, q.cents AS price
  FROM orders o ASOF JOIN prices q ON q.ts <= o.ts AND q.item = o.item;

-- Orders and payments at most two minutes apart, in order of the later of the two.
CREATE QUERY close WITH (join = 'filter_order') AS
  SELECT greatest(o.ts, p.ts) AS ts, o.id, p.order_id
  FROM orders [RANGE 2 MINUTES] AS o, payments [RANGE 2 MINUTES] AS p
  ORDER BY greatest(o.ts, p.ts);

-- What was paid within three minutes, by the minute of the order.
CREATE QUERY per_minute AS
  SELECT window_start, window_end, count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA o.ts] AS n, sum(p.cents) AS cents
  FROM orders [RANGE 3 MINUTES] AS o, payments [RANGE 0 SECONDS] AS p
  WHERE o.id = p.order_id;

-- Each payment with the earliest order of the last three minutes that no other payment has used, or with none.
CREATE QUERY served AS
  SELECT payments.ts, payments.order_id, orders.id AS served
  FROM orders SEQ payments MODE CHRONICLE OUTER WITHIN INTERVAL 3 MINUTES;
