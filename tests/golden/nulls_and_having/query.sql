-- Every aggregate over nulls, an argument that is an expression, and HAVING.
CREATE STREAM readings (sensor STRING, room INT, level DOUBLE, raw BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 1 MINUTE
  FROM csv OPTIONS (path 'inputs/readings.csv');

CREATE QUERY levels AS
  SELECT window_start, window_end, sensor, room, count(*) AS readings, count(level) AS known, sum(level) AS total, min(level) AS low,
         max(level) AS high, avg(level) AS mean, sum(raw * 2 + 1) AS scaled
  FROM readings [RANGE 2 MINUTES SLIDE 1 MINUTE WA ts]
  WHERE room IS NULL OR room < 9
  GROUP BY sensor, room
  HAVING count(*) > 1 OR max(level) IS NULL;
