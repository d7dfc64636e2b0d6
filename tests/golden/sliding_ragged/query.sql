-- A range that is no multiple of the slide: a row is in two windows or in three.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY sliding AS
  SELECT window_start, window_end, srcIP, count(*) AS n, max(len) AS longest
  FROM main1 UNION main2 [RANGE 50 SECONDS SLIDE 20 SECONDS WA ts]
  GROUP BY srcIP;
