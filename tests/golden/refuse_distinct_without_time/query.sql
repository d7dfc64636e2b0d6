-- error: see error.txt
CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/s.csv');
SELECT DISTINCT k FROM s;
