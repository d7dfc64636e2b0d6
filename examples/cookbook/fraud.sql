-- Fraud within ten minutes: a card in two countries, and a large payment after tiny ones
-- that only test the card.
CREATE STREAM payments (
    payment STRING, card BIGINT, country STRING, amount DECIMAL(9, 2), ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 15 MINUTES
  FROM csv OPTIONS (path 'examples/cookbook/data/payments.csv');

CREATE QUERY two_countries AS
  SELECT a.card, a.payment AS first, b.payment AS second, a.country AS here, b.country AS there,
         unix_seconds(b.ts) - unix_seconds(a.ts) AS seconds
  FROM payments a JOIN payments b
    ON a.card = b.card
    AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES
    AND a.country <> b.country;

CREATE QUERY tested_first AS
  SELECT window_end AS ts, card, count(*) AS payments, max(amount) AS largest
  FROM payments [RANGE 10 MINUTES]
  GROUP BY card
  HAVING count(*) FILTER (WHERE amount < 1) >= 2 AND max(amount) > 500;
