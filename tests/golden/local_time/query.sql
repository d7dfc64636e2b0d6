-- Times and windows of a zone: files without a zone, days of 23 and 25 hours, months, offsets, columns that are computed.
CREATE STREAM takings (shop STRING, day STRING, clock STRING, amount INT, ts TIMESTAMP AS to_utc_timestamp(to_timestamp(day || clock, 'yyyyMMddHHmm'), 'Europe/Berlin'))
  TIMESTAMP BY ts DISORDER INTERVAL 1 DAY
  FROM csv OPTIONS (path 'inputs/takings.csv');
CREATE STREAM callers (shop STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 HOURS TIME ZONE 'America/New_York'
  FROM csv OPTIONS (path 'inputs/callers.csv');

CREATE QUERY days AS
  SELECT window_start, window_end, shop, sum(amount) AS amount
  FROM takings [RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin'] GROUP BY shop;
CREATE QUERY hours AS
  SELECT window_start, window_end, count(*) AS n FROM takings [RANGE 2 HOURS SLIDE 1 HOUR AT TIME ZONE 'Europe/Berlin'];
CREATE QUERY months AS
  SELECT window_start, window_end, shop, count(*) AS n, max(ts) AS last
  FROM takings [RANGE 2 MONTHS SLIDE 1 MONTH AT TIME ZONE 'Europe/Berlin'] GROUP BY shop;
CREATE QUERY business_days AS
  SELECT window_start, from_utc_timestamp(window_start, 'America/New_York') AS there, count(*) AS n
  FROM callers [RANGE 1 DAY SLIDE 1 DAY OFFSET 6 HOURS AT TIME ZONE 'America/New_York'];
CREATE QUERY mid_months AS SELECT window_start, count(*) AS n FROM callers [RANGE 1 MONTH SLIDE 1 MONTH OFFSET 14 DAYS];
CREATE QUERY shifted AS SELECT window_start, count(*) AS n FROM callers GROUP BY window(ts, '1 day', '12 hours', '90 minutes');
CREATE QUERY best_month AS
  SELECT window_start, max(amount) AS most
  FROM (SELECT shop, sum(amount) AS amount FROM takings [RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin'] GROUP BY shop)
  [RANGE 1 MONTH SLIDE 1 MONTH AT TIME ZONE 'Europe/Berlin'];
CREATE QUERY plain AS SELECT * FROM takings WHERE amount > 6;
