-- What came too late is a stream of its own.
CREATE STREAM orders (id INT, amount INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS LATE INTO late_orders
  FROM csv OPTIONS (path 'inputs/orders.csv');

CREATE QUERY per_minute AS SELECT window_start, window_end, count(*) AS n, sum(amount) AS amount FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE];
CREATE QUERY too_late AS SELECT id, amount, ts FROM late_orders WHERE amount > 10;
CREATE QUERY by_twos AS SELECT window_start, window_end, count(*) AS n FROM orders [ROWS 2 SLIDE 2];
