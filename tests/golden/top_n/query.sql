-- The first few of each window: with QUALIFY, and as Flink's users write it.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY first_two AS
  SELECT window_start, window_end, page, n FROM (
    SELECT *, row_number() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS place
    FROM (SELECT window_start, window_end, page, count(*) AS n FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY page) AS counted
  ) AS ranked
  WHERE place <= 2;
CREATE QUERY most AS
  SELECT page, n FROM (SELECT window_start, window_end, page, count(*) AS n FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY page) AS counted
  QUALIFY rank() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) = 1;
CREATE QUERY per_client AS
  SELECT *, dense_rank() OVER (PARTITION BY window_start, window_end, client ORDER BY slowest) AS place
  FROM (SELECT window_start, window_end, client, page, max(ms) AS slowest FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY client, page) AS pages;
