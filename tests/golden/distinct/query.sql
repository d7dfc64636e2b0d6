-- Each once: in a window, at an instant, in a minute.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');
CREATE STREAM calls (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'inputs/calls.csv');

CREATE QUERY clients AS SELECT DISTINCT window_start, window_end, client FROM visits UNION calls [RANGE 1 MINUTE SLIDE 1 MINUTE];
CREATE QUERY instants AS SELECT DISTINCT ts FROM visits UNION calls;
CREATE QUERY minutes AS SELECT DISTINCT date_trunc('minute', ts) AS minute, page FROM visits WHERE page <> 'home';
