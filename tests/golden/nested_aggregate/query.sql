-- An aggregate over a window's results: of the same windows, and of wider ones by the results' own times.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY busiest AS
  SELECT window_start, window_end, max(n) AS most, count(*) AS clients
  FROM (SELECT window_start, window_end, client, count(*) AS n FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client) AS per_client
  GROUP BY window_start, window_end;
CREATE QUERY by_minute AS
  SELECT window_start, window_end, client, max(n) AS most, count(*) AS halves
  FROM (SELECT window_start, window_end, client, count(*) AS n FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client) AS per_client
       [RANGE 1 MINUTE SLIDE 1 MINUTE]
  GROUP BY client;
CREATE QUERY by_hour_of_the_half AS
  SELECT date_trunc('hour', half) AS hour, sum(n) AS n
  FROM (SELECT window_start AS half, page, count(*) AS n FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY page) AS per_page
  GROUP BY date_trunc('hour', half);
