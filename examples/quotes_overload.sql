-- Quotes and trades of six exchange feeds, 20 times as fast as they came: 12,000 quotes a second, of which a function that
-- takes half a millisecond can value 2,000.
--
--   millrace run examples/quotes_overload.sql --on local --until-end
--
-- The files are recordings that are not part of this repository. Each of the queues below holds six rows at most, so
-- an answer is some milliseconds old. With queue = 'append' in the query rows wait for their turn, longer and longer.
CREATE FUNCTION middle(DOUBLE, DOUBLE, INT) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow_quotes:middle';

CREATE STREAM quotes (recv_ns TIMESTAMP, venue STRING, symbol STRING, bid DOUBLE, ask DOUBLE)
  TIMESTAMP BY recv_ns ORDERED
  UPDATE KEY (venue, symbol)
  FROM csv OPTIONS (path '../shared/data/crypto_quotes.csv.gz', timestamp_format 'epoch_nanos')
  REPLAY BY recv_ns SPEED 20;
CREATE STREAM trades (recv_ns TIMESTAMP, venue STRING, symbol STRING, price DOUBLE, qty DOUBLE)
  TIMESTAMP BY recv_ns ORDERED
  UPDATE KEY (venue, symbol)
  FROM csv OPTIONS (path '../shared/data/crypto_trades.csv.gz', timestamp_format 'epoch_nanos')
  REPLAY BY recv_ns SPEED 20;

-- What each thing is worth, by its latest quote.
CREATE QUERY worth WITH (queue = 'inplace') AS
  SELECT recv_ns, venue, symbol, middle(bid, ask, 500) AS worth FROM quotes;

-- The latest trade of each thing beside its latest quote, whenever one of the two is new.
CREATE QUERY traded AS
  SELECT t.venue, t.symbol, t.price, t.qty, q.bid, q.ask, t.recv_ns AS traded, q.recv_ns AS quoted
  FROM trades AS t JOIN quotes AS q ON t.venue = q.venue AND t.symbol = q.symbol;
