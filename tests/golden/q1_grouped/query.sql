-- Q1 of paper 004, grouped: string keys of two columns, some of them null.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY per_pair AS
  SELECT window_start, window_end, srcIP, destIP, count(*) AS n, sum(len) AS bytes
  FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]
  GROUP BY srcIP, destIP;
