-- error: see error.txt
CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/s.csv');
SELECT count(*) FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA n];
