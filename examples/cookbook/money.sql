-- Money: what each card paid in half an hour, with a fee of 1.9 %, to the cent.
CREATE STREAM payments (payment STRING, card BIGINT, amount DECIMAL(9, 2), ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 15 MINUTES
  FROM csv OPTIONS (path 'examples/cookbook/data/payments.csv');

CREATE QUERY bills AS
  SELECT window_start, window_end, card, count(*) AS payments, sum(amount) AS total, round(sum(amount * 0.019), 2) AS fee
  FROM payments [RANGE 30 MINUTES SLIDE 30 MINUTES]
  GROUP BY card;
