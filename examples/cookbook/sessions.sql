-- Sessions: the working periods of the aircraft. A period ends when an aircraft has not
-- departed for five hours.
CREATE STREAM departures (flight STRING, tail STRING, dest STRING, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY periods AS
  SELECT window_start AS first, max(departed) AS last, tail,
         count(*) AS flights, string_agg(dest, ' ') AS route
  FROM departures [SESSION 5 HOURS]
  GROUP BY tail
  HAVING count(*) >= 4;
