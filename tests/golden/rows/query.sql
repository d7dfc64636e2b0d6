-- Windows of so many rows, counted as they enter and before WHERE; partial ones at both ends.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY by_threes AS SELECT window_start, window_end, count(*) AS n, sum(ms) AS ms FROM visits [ROWS 3 SLIDE 3];
CREATE QUERY sliding AS
  SELECT window_start, window_end, client, count(*) AS n, first(page) AS first_page FROM visits [ROWS 4 SLIDE 3] WHERE page <> 'cart' GROUP BY client;
CREATE QUERY last_three AS SELECT window_start, window_end, client, count(*) AS n, max(ms) AS slowest FROM visits [ROWS 3] GROUP BY client;
