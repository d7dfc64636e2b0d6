-- Q1 of paper 004: all links together, a count a minute.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY per_minute AS
  SELECT window_start, window_end, count(*) AS n FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
