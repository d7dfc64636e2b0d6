-- error: see error.txt
CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND FROM csv OPTIONS (path 'inputs/s.csv');
SELECT k FROM s;
