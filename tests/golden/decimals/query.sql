-- Decimals: exact in arithmetic, sums and means, and as keys of groups and joins.
CREATE STREAM sold (item STRING, price DECIMAL(9, 2), qty INT, vat DECIMAL(4, 3), weight DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM json OPTIONS (path 'inputs/sold.json');
CREATE STREAM rates (vat DECIMAL(5, 2), name STRING, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'inputs/rates.csv');

CREATE QUERY gross AS
  SELECT item, price * qty * (1 + vat) AS gross, price / qty AS each, round(price * 1.05, 1) AS raised, -price % 3 AS rest,
         CAST(price AS INT) AS whole, CAST(weight AS DECIMAL(10, 3)) AS exact, weight * 0.5 AS half, ts
  FROM sold
  WHERE price > 1.5 AND weight < 99.5;

CREATE QUERY totals AS
  SELECT window_start, window_end, vat, sum(price) AS total, avg(price) AS mean, min(price) AS least, max(price * 100) AS most,
         count(DISTINCT price) AS prices, sum(DISTINCT price) AS once, max_by(item, price) AS dearest
  FROM sold [RANGE 1 MINUTE SLIDE 1 MINUTE]
  GROUP BY vat;

CREATE QUERY dear AS
  SELECT window_start, window_end, item, sum(price * qty) AS turnover
  FROM sold [RANGE 2 MINUTES SLIDE 1 MINUTE]
  GROUP BY item
  HAVING sum(price * qty) >= 10.00
  QUALIFY rank() OVER (PARTITION BY window_start, window_end ORDER BY turnover DESC) <= 2;

CREATE QUERY named AS
  SELECT s.item, r.name, s.price
  FROM sold [RANGE 1 HOUR] AS s, rates [RANGE 1 HOUR] AS r
  WHERE s.vat = r.vat;

CREATE QUERY once AS SELECT DISTINCT window_start, window_end, vat FROM sold [RANGE 1 HOUR SLIDE 1 HOUR];
