-- Windows by rows: the last rows of a stream, or of each of its groups, when a row of the other comes.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');

CREATE QUERY last_rows AS
  SELECT o.id, p.order_id, p.amount FROM purchases [ROWS 2] AS o, payments [ROWS 1] AS p WHERE o.client = p.client;
CREATE QUERY last_of_each AS
  SELECT o.id, p.order_id, p.amount FROM purchases [ROWS 1 PARTITION BY client] AS o, payments AS p WHERE o.client = p.client;
CREATE QUERY rows_and_time AS
  SELECT o.id, p.order_id, p.amount FROM purchases [ROWS 1] AS o, payments [RANGE 5 SECONDS] AS p WHERE p.amount > 2;
