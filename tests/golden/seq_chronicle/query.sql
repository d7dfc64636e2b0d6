-- A sequence one to one: each item with the first crate before it that no item before has used.
CREATE STREAM crates (tag STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/crates.csv');
CREATE STREAM goods (code STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  FROM csv OPTIONS (path 'inputs/goods.csv');

CREATE QUERY packed AS
  SELECT c.tag, g.code, g.ts FROM crates AS c SEQ goods AS g MODE CHRONICLE WITHIN INTERVAL 10 SECONDS WHERE c.gate = g.gate;
CREATE QUERY packed_or_not AS
  SELECT c.tag, g.code FROM crates AS c SEQ goods AS g ON c.gate = g.gate MODE CHRONICLE OUTER WITHIN INTERVAL 10 SECONDS;
CREATE QUERY of_any_gate AS
  SELECT c.tag, g.code FROM crates AS c SEQ goods AS g MODE CHRONICLE WITH (state_limit = 100);
