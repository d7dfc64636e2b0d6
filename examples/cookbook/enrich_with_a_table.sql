-- Enrichment: late departures with the name of their airline, and how late the airlines of
-- each alliance are.
CREATE TABLE carriers (code STRING PRIMARY KEY, name STRING, alliance STRING)
  FROM csv OPTIONS (path 'examples/cookbook/data/carriers.csv')
  REFRESH EVERY INTERVAL 1 HOUR;

CREATE STREAM departures (flight STRING, carrier STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY very_late AS
  SELECT d.departed, d.flight, c.name AS airline, d.delay
  FROM departures d LEFT JOIN carriers c ON d.carrier = c.code
  WHERE d.delay > 240;

CREATE QUERY by_alliance AS
  SELECT window_start, window_end, coalesce(c.alliance, 'none') AS alliance,
         count(*) AS flights, round(avg(d.delay), 1) AS delay
  FROM departures [RANGE 1 DAY SLIDE 1 DAY] d LEFT JOIN carriers c ON d.carrier = c.code
  GROUP BY coalesce(c.alliance, 'none');
