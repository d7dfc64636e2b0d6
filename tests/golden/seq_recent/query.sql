-- A sequence: each item with the crate that came last before it.
CREATE STREAM crates (tag STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/crates.csv');
CREATE STREAM goods (code STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  FROM csv OPTIONS (path 'inputs/goods.csv');

CREATE QUERY packed AS
  SELECT * FROM crates SEQ goods MODE RECENT WHERE crates.gate = goods.gate;
CREATE QUERY within_two_seconds AS
  SELECT c.tag, g.code FROM crates AS c SEQ goods AS g ON c.gate = g.gate MODE RECENT OUTER WITHIN INTERVAL 2 SECONDS;
CREATE QUERY three_in_a_row AS
  SELECT c.tag, g.code, d.tag AS next FROM crates AS c SEQ goods AS g SEQ crates AS d MODE RECENT WITHIN INTERVAL 9 SECONDS
  WHERE c.gate = g.gate AND g.gate = d.gate;
