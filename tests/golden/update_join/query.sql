-- The latest rows of two update streams, joined by their key.
CREATE STREAM backup (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol)
  FROM csv OPTIONS (path 'inputs/backup.csv');
CREATE STREAM fills (sym STRING, price DOUBLE, at TIMESTAMP)
  TIMESTAMP BY at ORDERED UPDATE KEY (sym)
  FROM csv OPTIONS (path 'inputs/fills.csv')
  WITH (queue = 'update_fifo', budget = '20 rows');

CREATE QUERY both WITH (budget = '20 rows', queue = 'inplace') AS
  SELECT q.symbol, q.price AS quoted, f.price AS filled, f.at, q.ts FROM backup AS q JOIN fills AS f ON q.symbol = f.sym;
CREATE QUERY of_some WITH (budget = '1 second', queue = 'linecutting') AS
  SELECT f.sym, size, f.price FROM backup AS q JOIN fills AS f ON f.sym = q.symbol WHERE q.size > 250;
CREATE QUERY by_using AS
  SELECT * FROM fills JOIN (SELECT sym, price AS double_price FROM fills) AS again USING (sym);
