-- error: see error.txt
CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/s.csv');
SELECT k, count(*) FROM s [RANGE UNLIMITED PRECEDING] GROUP BY k;
