-- The last rows of each client: a result for each row, or for every other one; WHERE does not renumber.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY last_two AS SELECT window_start, window_end, client, count(*) AS n, sum(ms) AS ms FROM visits [ROWS 2 PARTITION BY client] GROUP BY client;
CREATE QUERY by_twos AS
  SELECT window_start, window_end, client, count(*) AS n, max(page) AS page FROM visits [ROWS 2 SLIDE 2 PARTITION BY client]
  WHERE page <> 'cart' GROUP BY client;
