-- error: see error.txt
CREATE STREAM a (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/a.csv');
CREATE STREAM b (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/b.csv');
SELECT a.v FROM a ASOF JOIN b ON b.ts >= a.ts AND a.k = b.k;
