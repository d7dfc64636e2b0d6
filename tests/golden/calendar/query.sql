-- Grouping by a function of time that only goes up is a window: weeks, months, quarters, years, days.
CREATE STREAM sales (shop STRING, amount INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 40 DAYS
  FROM csv OPTIONS (path 'inputs/sales.csv');

CREATE QUERY per_month AS
  SELECT date_trunc('month', ts) AS month, shop, sum(amount) AS amount FROM sales GROUP BY date_trunc('month', ts), shop;
CREATE QUERY per_week AS
  SELECT date_trunc('week', ts) AS week, count(*) AS n FROM sales WHERE amount > 2 GROUP BY date_trunc('week', ts);
CREATE QUERY per_quarter AS SELECT date_trunc('quarter', ts) AS quarter, count(*) AS n FROM sales GROUP BY date_trunc('quarter', ts);
CREATE QUERY per_year AS SELECT date_trunc('year', ts) AS year, max(amount) AS most FROM sales GROUP BY date_trunc('year', ts);
CREATE QUERY per_day AS SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM sales GROUP BY CAST(ts AS DATE);
CREATE QUERY per_instant AS SELECT ts, count(*) AS n FROM sales GROUP BY ts HAVING count(*) > 1;
