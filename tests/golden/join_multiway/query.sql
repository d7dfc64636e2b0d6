-- Three streams on one key: one operator; and three without keys.
CREATE STREAM purchases (id INT, client STRING, item STRING, expires TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/purchases.csv');
CREATE STREAM payments (order_id BIGINT, client STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/payments.csv');
CREATE STREAM parcels (id BIGINT, order_id BIGINT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'inputs/parcels.csv');

CREATE QUERY delivered AS
  SELECT o.id, p.amount, s.id AS parcel, unix_timestamp(s.ts) - unix_timestamp(o.ts) AS after
  FROM purchases AS o, payments AS p, parcels AS s
  WHERE o.id = p.order_id AND p.order_id = s.order_id
    AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 30 SECONDS AND s.ts BETWEEN p.ts AND p.ts + INTERVAL 15 SECONDS;
CREATE QUERY windows AS
  SELECT o.id, p.amount, s.id AS parcel
  FROM purchases [RANGE 20 SECONDS] AS o, payments [RANGE 10 SECONDS] AS p, parcels [RANGE 10 SECONDS] AS s
  WHERE o.id = p.order_id AND o.id = s.order_id;
CREATE QUERY at_about_one_time AS
  SELECT o.id, p.order_id, s.id AS parcel
  FROM purchases [RANGE 10 SECONDS] AS o, payments [RANGE 10 SECONDS] AS p, parcels [RANGE 10 SECONDS] AS s WHERE o.item <> s.item;
