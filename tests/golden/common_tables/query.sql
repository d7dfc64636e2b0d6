-- Queries as other systems write them: common tables, GROUP BY ALL and all columns but some.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY busiest AS
  WITH known AS (SELECT * FROM visits WHERE client IS NOT NULL),
       per_client AS (SELECT window_start, window_end, client, count(*) AS n FROM known [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY ALL)
  SELECT window_start, window_end, max(n) AS most, count(*) AS clients FROM per_client GROUP BY ALL;
CREATE QUERY followed AS
  WITH slow AS (SELECT v.* EXCEPT (page) FROM visits AS v WHERE ms > 100)
  SELECT slow.* EXCEPT (ms), later.* EXCEPT (client, ts)
  FROM slow JOIN visits AS later
    ON later.client = slow.client AND later.ts BETWEEN slow.ts AND slow.ts + INTERVAL 10 SECONDS;
CREATE QUERY plain AS SELECT * EXCEPT (ms, client) FROM visits;
