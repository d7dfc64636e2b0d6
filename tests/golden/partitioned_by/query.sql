-- Links in one stream, each in order, far behind one another.
CREATE STREAM packets (link STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  PARTITIONED BY (link)
  FROM csv OPTIONS (path 'inputs/packets.csv');

CREATE QUERY per_link AS
  SELECT window_start, window_end, link, count(*) AS n, sum(len) AS bytes FROM packets [RANGE 30 SECONDS SLIDE 30 SECONDS WA ts] GROUP BY link;
CREATE QUERY lengths AS
  SELECT ts, len FROM packets WHERE len >= 100 ORDER BY ts;
