-- Two disordered streams as one sequence in time order: a row leaves when no stream can send an earlier one.
CREATE STREAM north (sensor STRING, reading DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS
  FROM csv OPTIONS (path 'examples/data/north.csv');
CREATE STREAM south (sensor STRING, reading DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 3 SECONDS
  FROM csv OPTIONS (path 'examples/data/south.csv');

SELECT ts, sensor, round(reading, 1) AS reading
FROM north UNION south
WHERE reading IS NOT NULL
ORDER BY ts;
