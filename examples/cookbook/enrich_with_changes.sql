-- Slowly changing data: each long-delayed departure with the weather that was last observed
-- at its airport.
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE STREAM weather (origin STRING, wind_speed DOUBLE, visib DOUBLE, observed TIMESTAMP)
  TIMESTAMP BY observed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/weather.csv');

CREATE QUERY in_weather AS
  SELECT d.departed, d.flight, d.origin, d.delay, w.wind_speed, w.visib, w.observed
  FROM departures d ASOF LEFT JOIN weather w ON w.observed <= d.departed AND w.origin = d.origin
  WHERE d.delay > 240;
