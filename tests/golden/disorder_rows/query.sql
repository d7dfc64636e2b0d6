-- A row trails by two rows at most, however much time lies between them.
CREATE STREAM trades (symbol STRING, price INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER 2 ROWS
  FROM csv OPTIONS (path 'inputs/trades.csv');

CREATE QUERY highest AS
  SELECT window_start, window_end, symbol, max(price) AS price FROM trades [RANGE 1 HOUR SLIDE 1 HOUR WA ts] GROUP BY symbol;
CREATE QUERY tape AS
  SELECT ts, symbol, price FROM trades ORDER BY ts;
