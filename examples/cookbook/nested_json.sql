-- Nested JSON: a message per aircraft, with an array of its flights; a row per flight, and
-- sums over them.
CREATE STREAM aircraft (
    ts TIMESTAMP,
    aircraft STRUCT<tail: STRING, airline: STRUCT<code: STRING>>,
    flights ARRAY<STRUCT<number: STRING, route: STRUCT<`from`: STRING, `to`: STRING>, delay: INT>>)
  TIMESTAMP BY ts ORDERED
  FROM json OPTIONS (path 'examples/cookbook/data/aircraft.json');

CREATE QUERY last_flight AS
  SELECT ts, aircraft.tail, size(flights) AS flights, flights[size(flights) - 1].route.`to` AS dest
  FROM aircraft
  WHERE aircraft.airline.code = 'US';

CREATE QUERY delays AS
  SELECT window_start, window_end, f.route.`to` AS dest, count(*) AS flights, sum(f.delay) AS minutes
  FROM aircraft [RANGE 1 DAY SLIDE 1 DAY] LATERAL VIEW explode(flights) x AS f
  GROUP BY f.route.`to`
  HAVING sum(f.delay) > 100;
