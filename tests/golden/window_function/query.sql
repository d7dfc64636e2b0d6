-- window() in GROUP BY, as Spark users write it.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY windowed AS
  SELECT window_start, window_end, srcIP, count(*) AS n
  FROM main1
  GROUP BY window(ts, '1 minute'), srcIP;
