-- Rows of several streams are counted by time, then stream, then their order in it.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');
CREATE STREAM calls (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'inputs/calls.csv');

CREATE QUERY by_fours AS
  SELECT window_start, window_end, count(*) AS n, first(page) AS first_page, last(page) AS last_page, sum(ms) AS ms
  FROM visits UNION calls [ROWS 4 SLIDE 4];
CREATE QUERY pairs AS SELECT window_start, window_end, client, count(*) AS n FROM calls UNION visits [ROWS 2] WHERE client IS NOT NULL GROUP BY client;
