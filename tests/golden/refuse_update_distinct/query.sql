-- error: see error.txt
CREATE STREAM quotes (symbol STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol) FROM csv OPTIONS (path 'inputs/quotes.csv');
CREATE STREAM plain (symbol STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/plain.csv');
SELECT DISTINCT symbol, ts FROM quotes;
