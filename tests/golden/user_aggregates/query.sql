-- Aggregates that a user defines in SQL: one that merges, and one that takes its values in order of time.
CREATE AGGREGATE myavg(next DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS
  INITIALIZE (total = 0.0, n = 0)
  ITERATE (total = total + next, n = n + 1)
  MERGE (total = total + other.total, n = n + other.n)
  TERMINATE total / n;
CREATE AGGREGATE fading(next INT) RETURNS DOUBLE LANGUAGE SQL AS
  INITIALIZE (value = 0.0)
  ITERATE (value = value / 2 + next)
  TERMINATE value;
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY means AS
  SELECT window_start, window_end, client, myavg(ms) AS mean, count(*) AS n FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE ms IS NOT NULL GROUP BY client;
CREATE QUERY fading AS
  SELECT window_start, window_end, client, fading(ms) AS faded FROM visits [RANGE 2 MINUTES SLIDE 2 MINUTES] WHERE ms IS NOT NULL GROUP BY client;
