-- Dead letters: rows that cannot be read are kept with their text, place and reason.
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  QUARANTINE INTO dead_letters
  FROM csv OPTIONS (path 'examples/cookbook/data/messy.csv');

CREATE QUERY per_hour AS
  SELECT window_start, window_end, origin, count(*) AS flights FROM departures [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY origin;

CREATE QUERY letters AS SELECT line, reason, raw FROM dead_letters;
