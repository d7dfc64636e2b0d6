-- Results of a window have the columns of the select list; their time goes with them.
CREATE STREAM visits (client STRING, page STRING, ms INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS
  FROM csv OPTIONS (path 'inputs/visits.csv');

CREATE QUERY halves AS
  SELECT client, min(ts) AS ts, count(*) AS n FROM visits [RANGE 30 SECONDS SLIDE 30 SECONDS] GROUP BY client
  ORDER BY window_end, ts;
CREATE QUERY minutes AS
  SELECT window_start, max(n) AS most FROM halves [RANGE 1 MINUTE SLIDE 1 MINUTE WA window_start];
CREATE QUERY three_levels AS
  SELECT sum(most) AS total FROM (SELECT max(n) AS most FROM halves [RANGE 1 MINUTE SLIDE 1 MINUTE]) [RANGE 1 HOUR SLIDE 1 HOUR];
CREATE QUERY united AS
  SELECT client, count(*) AS n FROM visits [SESSION 5 SECONDS] GROUP BY client UNION SELECT page, count(*) AS n FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE]
  GROUP BY page HAVING window_start > TIMESTAMP '2024-01-01 00:00:00';
CREATE QUERY first_of_each AS
  SELECT page, count(*) AS n FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY page
  QUALIFY row_number() OVER (PARTITION BY window_start ORDER BY count(*) DESC, page) = 1;
CREATE QUERY both AS
  SELECT window, client FROM visits [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY client;
