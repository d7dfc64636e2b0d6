-- error: see error.txt
CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/s.csv');
SELECT max(c) FROM (SELECT window_start, window_end, k, count(*) AS c FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k) AS t;
