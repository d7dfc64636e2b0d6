-- A low level of one or two groups, however it is emptied, changes no answer.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY in_order WITH (low_level_groups = 1, baseline = 'in_order_flush') AS
  SELECT window_start, window_end, client, page, count(*) AS n, sum(ms) AS ms FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client, page;
CREATE QUERY slowly WITH (low_level_groups = 2, flush = 'slow_flush(2, 2)') AS
  SELECT window_start, window_end, client, page, count(*) AS n, sum(ms) AS ms FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client, page;
CREATE QUERY lazily WITH (low_level_groups = 2, flush = 'lazy_flush(2)') AS
  SELECT window_start, window_end, client, page, count(*) AS n, sum(ms) AS ms FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client, page;
CREATE QUERY buffered WITH (panes = 'off') AS
  SELECT window_start, window_end, client, count(*) AS n, avg(ms) AS mean FROM visits [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY client;
