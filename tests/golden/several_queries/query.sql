-- Several queries over one stream share its scan.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'inputs/control.csv');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS
  FROM csv OPTIONS (path 'inputs/main2.csv');

CREATE QUERY per_minute AS SELECT window_start, window_end, count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
CREATE QUERY per_source AS
  SELECT window_start, window_end, srcIP, avg(len) AS mean FROM main1 [RANGE 2 MINUTES SLIDE 1 MINUTE WA ts] GROUP BY srcIP;
CREATE QUERY short AS SELECT srcIP, len FROM main1 WHERE len < 100;
CREATE QUERY both AS SELECT window_start, window_end, srcIP, count(*) AS n FROM main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY srcIP;
