-- Top N: the three busiest destinations of every four hours.
CREATE STREAM departures (flight STRING, dest STRING, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY busiest AS
  SELECT window_start, place, dest, flights
  FROM (SELECT window_start, dest, count(*) AS flights,
               row_number() OVER (
                 PARTITION BY window_start, window_end ORDER BY flights DESC, dest) AS place
        FROM departures [RANGE 4 HOURS SLIDE 4 HOURS]
        GROUP BY dest)
  WHERE place <= 3;
