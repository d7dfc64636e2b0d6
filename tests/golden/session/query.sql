-- Sessions end when a client is quiet for the gap: a row exactly one gap later starts a new one, but not in Flink's words.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY by_bracket AS
  SELECT window_start, window_end, client, count(*) AS n, last(page) AS left_at FROM visits [SESSION 24 SECONDS] GROUP BY client;
CREATE QUERY by_function AS
  SELECT window_start, window_end, client, count(*) AS n, sum(ms) AS ms FROM SESSION(TABLE visits PARTITION BY client, DESCRIPTOR(ts), INTERVAL 24 SECONDS)
  GROUP BY client, window_start, window_end;
