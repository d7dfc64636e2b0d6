-- Windows before and across the epoch.
CREATE STREAM archive (station STRING, value INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 1 HOUR
  FROM csv OPTIONS (path 'inputs/archive.csv');

CREATE QUERY per_quarter AS
  SELECT window_start, window_end, station, count(*) AS n, sum(value) AS total
  FROM archive [RANGE 25 MINUTES SLIDE 15 MINUTES WA ts]
  GROUP BY station;
