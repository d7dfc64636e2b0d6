-- How operators are scheduled changes no answer.
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY breadth_first WITH (strategy = 'bfs', share = 3) AS
  SELECT window_start, window_end, srcIP, count(*) AS n FROM main1 UNION main2 [RANGE 1 MINUTE SLIDE 30 SECONDS WA ts] GROUP BY srcIP;
CREATE QUERY in_turn WITH (strategy = 'rr', baseline = 'in_order') AS
  SELECT window_start, window_end, srcIP, max(len) AS longest FROM main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY srcIP;
CREATE QUERY batched WITH (strategy = 'batch:2', breaks = 'chain', ets_arcs = 'off') AS
  SELECT srcIP, len, ts FROM main1 UNION main2 WHERE len < 1000 ORDER BY ts;
