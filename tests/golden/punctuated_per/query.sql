-- Each device promises for itself; a row is late below its own device's promise only.
CREATE STREAM devices (device STRING, level INT, complete_until TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts PUNCTUATED BY complete_until PER (device) LATE INTO late_readings
  FROM csv OPTIONS (path 'inputs/devices.csv');

CREATE QUERY per_device AS
  SELECT window_start, window_end, device, count(*) AS n, max(level) AS level FROM devices [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY device;
CREATE QUERY in_all AS SELECT window_start, window_end, count(*) AS n FROM devices [RANGE 1 MINUTE SLIDE 1 MINUTE];
CREATE QUERY late AS SELECT device, level FROM late_readings;
