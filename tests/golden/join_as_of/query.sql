-- Each row with the last one before it, of its gate; among equal times the one that entered last.
CREATE STREAM crates (tag STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/crates.csv');
CREATE STREAM goods (code STRING, gate INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  FROM csv OPTIONS (path 'inputs/goods.csv');

CREATE QUERY packed AS
  SELECT g.code, c.tag FROM goods AS g ASOF JOIN crates AS c ON c.ts <= g.ts AND c.gate = g.gate;
CREATE QUERY packed_or_not AS
  SELECT g.*, c.tag FROM goods AS g ASOF LEFT JOIN crates AS c ON c.ts <= g.ts AND c.gate = g.gate;
CREATE QUERY strictly_before AS
  SELECT g.code, c.tag FROM goods AS g LEFT ASOF JOIN crates AS c
  ON c.gate = g.gate AND c.ts < g.ts AND c.ts >= g.ts - INTERVAL 4 SECONDS;
CREATE QUERY as_snowflake_says AS
  SELECT g.code, c.tag FROM goods AS g ASOF JOIN crates AS c MATCH_CONDITION (g.ts >= c.ts) USING (gate);
CREATE QUERY of_any_gate AS
  SELECT g.code, c.tag FROM goods AS g ASOF JOIN crates AS c ON c.ts <= g.ts;
