-- Every aggregate side by side, with FILTER, over nulls and over nothing.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY statistics AS
  SELECT window_start, window_end, client, count(ms) AS n, var_samp(ms) AS var_samp, var_pop(ms) AS var_pop, stddev(ms) AS stddev, stddev_pop(ms) AS stddev_pop,
         median(ms) AS middle, percentile(ms, 0.25) AS quarter
  FROM visits [RANGE 2 MINUTES SLIDE 2 MINUTES] GROUP BY client;
CREATE QUERY choices AS
  SELECT window_start, window_end, client, first(page) AS first_page, last(page) AS last_page, max_by(page, ms) AS slowest, min_by(page, ms) AS fastest,
         first(ms) AS first_ms, last(ms) AS last_ms
  FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY client;
CREATE QUERY sets AS
  SELECT window_start, window_end, count(DISTINCT page) AS pages, sum(DISTINCT ms) AS ms, approx_count_distinct(page) AS about,
         bool_and(ms > 45) AS all_slow, bool_or(ms > 150) AS some_slow, count_if(page = 'home') AS homes
  FROM visits [RANGE 1 MINUTE SLIDE 30 SECONDS];
CREATE QUERY gathered AS
  SELECT window_start, window_end, client, array_agg(page) AS pages, collect_set(page) AS different, string_agg(page, ' > ') AS path,
         listagg(DISTINCT page, ', ') WITHIN GROUP (ORDER BY page DESC) AS sorted, mode(page) AS most, count(DISTINCT page, ms) AS pairs,
         max(struct(ms, page)) AS slowest
  FROM visits [RANGE 2 MINUTES SLIDE 1 MINUTE] GROUP BY client;
CREATE QUERY spread AS
  SELECT window_start, window_end, client, percentile(ms, array(0.25, 0.75)) AS quarters, percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS middle,
         corr(ms, length(page)) AS corr, regr_slope(ms, length(page)) AS slope, skewness(ms) AS skewness, bit_xor(ms) AS bits,
         histogram_numeric(ms, 9) AS bins
  FROM visits [SESSION 1 MINUTE] GROUP BY client;
CREATE QUERY spans AS
  SELECT window_start, window_end, client, max(ts) - min(ts) AS span, avg(ts - TIMESTAMP '2024-01-01 12:00:00') AS late, sum(INTERVAL '2-3' YEAR TO MONTH) AS months,
         count_if(ts - TIMESTAMP '2024-01-01 12:00:00' > INTERVAL '0:40' MINUTE TO SECOND) AS n, max(ts) + INTERVAL 1 MONTH AS due
  FROM visits [RANGE 2 MINUTES SLIDE 2 MINUTES] GROUP BY client;
CREATE QUERY filtered AS
  SELECT window_start, window_end, page, count(*) AS n, count(*) FILTER (WHERE client = 'ann') AS by_ann, sum(ms) FILTER (WHERE ms > 100) AS slow,
         max(client) FILTER (WHERE ms IS NULL) AS unmeasured
  FROM visits [RANGE 2 MINUTES SLIDE 2 MINUTES] GROUP BY page HAVING count(*) FILTER (WHERE client IS NOT NULL) > 0;
