-- Five minutes in real time, to look at: millrace serve examples/live.sql --on local
-- After 30 seconds the orders fall silent for a minute. Nothing says how far behind they may be, so query bought waits for
-- them, and the page says so. Query per_page reads the clicks alone, and goes on.
CREATE STREAM clicks (user STRING, page STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM generate OPTIONS (rate '50', seconds '300', seed '1', keys '6', disorder '1') REPLAY BY ts;

CREATE STREAM orders (user STRING, amount DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM generate OPTIONS (rate '5', seconds '300', seed '2', keys '6', silent_from '30', silent_to '90') REPLAY BY ts;

CREATE QUERY per_page AS
  SELECT window_start, window_end, page, count(*) AS n FROM clicks [RANGE 5 SECONDS SLIDE 5 SECONDS WA ts] GROUP BY page;

CREATE QUERY bought AS
  SELECT window_start, window_end, count(*) AS n, max(amount) AS most
  FROM (SELECT o.ts, o.amount FROM orders o JOIN clicks c
          ON o.user = c.user AND c.ts BETWEEN o.ts - INTERVAL 2 SECONDS AND o.ts)
       [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
