-- De-duplication: every departure once, though the feed repeats some of them up to half an
-- hour later.
CREATE STREAM reports (flight STRING, origin STRING, dest STRING, departed TIMESTAMP)
  TIMESTAMP BY departed DISORDER INTERVAL 30 MINUTES
  FROM csv OPTIONS (path 'examples/cookbook/data/reports.csv');

CREATE QUERY once AS
  SELECT DISTINCT departed, flight, origin, dest
  FROM reports;
