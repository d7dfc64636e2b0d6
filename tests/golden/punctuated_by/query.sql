-- Sources that promise themselves: by a time in a column, and by marking rows.
CREATE STREAM meters (meter STRING, kwh INT, complete_until TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts PUNCTUATED BY complete_until
  FROM csv OPTIONS (path 'inputs/meters.csv');
CREATE STREAM alarms (meter STRING, level INT, ts TIMESTAMP)
  TIMESTAMP BY ts PUNCTUATED BY level = 0 ETS ON DEMAND LULL INTERVAL 5 MINUTES
  FROM csv OPTIONS (path 'inputs/alarms.csv');

CREATE QUERY per_minute AS
  SELECT window_start, window_end, meter, sum(kwh) AS kwh FROM meters [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY meter;
CREATE QUERY in_order AS
  SELECT ts, meter FROM meters UNION ALL SELECT ts, meter FROM alarms WHERE level > 0 ORDER BY ts;
