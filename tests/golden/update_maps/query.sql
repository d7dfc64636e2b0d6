-- Updates through maps, filters and unions: the last answer of each key, whatever the queue.
CREATE STREAM quotes (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 15 SECONDS UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'inputs/quotes.csv');
CREATE STREAM backup (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'inputs/backup.csv');
CREATE STREAM backup_watched (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY ()
  FROM csv OPTIONS (path 'inputs/backup_watched.csv');

CREATE QUERY mapped AS
  SELECT symbol AS name, price * 2 AS twice, ts FROM quotes WHERE size > 100;
CREATE QUERY nested WITH (queue = 'linecutting', baseline = 'naive_memory') AS
  SELECT symbol, spread, ts FROM (SELECT symbol, price - 100 AS spread, size, ts FROM quotes WHERE venue = 'N') WHERE spread < 8;
CREATE QUERY united WITH (queue = 'auto') AS
  SELECT symbol, venue, price FROM quotes UNION backup TRUTH backup WHERE size > 50;
CREATE QUERY of_selects WITH (budget = '3 rows') AS
  SELECT symbol AS s, size FROM quotes UNION SELECT symbol, size FROM backup;
CREATE QUERY one_key AS
  SELECT price, size FROM backup_watched WHERE venue = 'Q';
CREATE QUERY read_now_and_then
  ACCESS EVERY INTERVAL 1 MINUTE WHEN name = 'GOOG', EVERY INTERVAL 1 HOUR
  AS SELECT symbol AS name, size FROM quotes;
CREATE QUERY all_rows WITH (queue = 'append') AS
  SELECT price, size FROM quotes WHERE size > 100;
CREATE QUERY all_kept WITH (queue = 'append_shed', keep = 1) AS
  SELECT window_start, window_end, symbol, count(*) AS n FROM quotes [SESSION 20 SECONDS] GROUP BY symbol;
