-- Percentiles: the median delay, and what nineteen of twenty flights do better than, per
-- airport and six hours.
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY delays AS
  SELECT window_start, window_end, origin, count(*) AS flights, percentile(delay, 0.5) AS median,
         round(percentile(delay, 0.95), 1) AS p95, max_by(flight, delay) AS latest
  FROM departures [RANGE 6 HOURS SLIDE 6 HOURS]
  GROUP BY origin;
