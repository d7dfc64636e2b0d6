-- Queries that begin alike: the filter runs once for all, the aggregate once for two.
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/main1.csv');

CREATE QUERY long_rows AS SELECT srcIP, len, ts FROM main1 WHERE len > 99;
CREATE QUERY long_in_order AS SELECT srcIP, len, ts FROM main1 WHERE len > 99 ORDER BY ts;
CREATE QUERY per_source AS
  SELECT window_start, window_end, srcIP, count(*) AS n, sum(len) AS total FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] WHERE len > 99 GROUP BY srcIP;
CREATE QUERY busy_sources AS
  SELECT window_start, window_end, srcIP, count(*) AS n, sum(len) AS total FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] WHERE len > 99 GROUP BY srcIP
  HAVING count(*) > 1;
