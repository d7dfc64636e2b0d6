-- error: see error.txt
CREATE STREAM a (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/a.csv');
CREATE STREAM b (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'inputs/b.csv');
SELECT v FROM a JOIN b ON a.k = b.k AND a.ts = b.ts;
