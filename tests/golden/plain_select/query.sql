-- Filter and expressions, without an aggregate.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY long_packets AS
  SELECT upper(srcIP) AS source, coalesce(destIP, '?') AS target, len * 8 AS bits,
         CASE WHEN len >= 300 THEN 'long' ELSE 'short' END AS size, ts
  FROM main1 UNION main2
  WHERE len BETWEEN 90 AND 400 AND srcIP IS NOT NULL;
