-- A result for each row, over the rows of its client up to 24 seconds before it; and over all so far.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY recent AS SELECT window_start, window_end, client, count(*) AS n, avg(ms) AS mean FROM visits [RANGE 24 SECONDS] GROUP BY client;
CREATE QUERY so_far AS
  SELECT window_start, window_end, client, count(*) AS n, max_by(page, ms) AS slowest FROM visits [RANGE UNLIMITED PRECEDING]
  GROUP BY client WITH (state_limit = 10);
