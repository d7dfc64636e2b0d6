-- Windows of update streams: the last window of each key, complete.
CREATE STREAM quotes (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 15 SECONDS UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'inputs/quotes.csv');
CREATE STREAM backup (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'inputs/backup.csv');

CREATE QUERY eager AS
  SELECT window_start, window_end, symbol, count(*) AS n, max(price) AS most FROM quotes [RANGE 40 SECONDS SLIDE 20 SECONDS] GROUP BY symbol;
CREATE QUERY lazy WITH (update_window = 'lazy', queue = 'update_fifo') AS
  SELECT window_start, window_end, symbol, count(*) AS n, avg(price) AS mean FROM quotes [RANGE 40 SECONDS SLIDE 20 SECONDS] WHERE size > 30 GROUP BY symbol;
CREATE QUERY by_own_rows WITH (close = 'own', tick = '1 second') AS
  SELECT window_start, window_end, symbol, sum(size) AS total FROM backup [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY symbol;
CREATE QUERY by_the_minute AS
  SELECT symbol, date_trunc('minute', ts) AS minute, count(*) AS n FROM quotes GROUP BY symbol, 2 HAVING count(*) > 0;
CREATE QUERY two_in_a_chain AS
  SELECT window_start, window_end, symbol, max(n) AS most, count(*) AS windows FROM
    (SELECT symbol, count(*) AS n FROM quotes [RANGE 30 SECONDS SLIDE 10 SECONDS] GROUP BY symbol)
    [RANGE 1 MINUTE SLIDE 20 SECONDS] GROUP BY symbol;
CREATE QUERY all_windows WITH (queue = 'append') AS
  SELECT window_start, window_end, venue, count(*) AS n FROM quotes [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY venue;
