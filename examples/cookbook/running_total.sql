-- A running total and a moving average: minutes that long delays have cost since the
-- morning, and the delay over three hours.
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY running_total WITH (state_limit = 100) AS
  SELECT window_end AS departed, origin, count(*) AS flights, sum(delay) AS minutes
  FROM departures [RANGE UNLIMITED PRECEDING]
  WHERE delay > 150 AND origin = 'JFK'
  GROUP BY origin;

CREATE QUERY moving_average AS
  SELECT window_start, window_end, origin, round(avg(delay), 1) AS delay
  FROM departures [RANGE 3 HOURS SLIDE 1 HOUR]
  WHERE origin = 'JFK'
  GROUP BY origin;
