-- Absence: flights of the timetable that have not departed three hours after their time.
CREATE STREAM timetable (flight STRING, origin STRING, dest STRING, scheduled TIMESTAMP)
  TIMESTAMP BY scheduled ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/timetable.csv');

CREATE STREAM departures (flight STRING, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  ETS ON DEMAND SKEW INTERVAL 1 MINUTE
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY missing AS
  SELECT t.scheduled, t.flight, t.origin, t.dest
  FROM timetable t LEFT JOIN departures d
    ON t.flight = d.flight
    AND d.departed BETWEEN t.scheduled - INTERVAL 1 HOUR AND t.scheduled + INTERVAL 3 HOURS
  WHERE d.flight IS NULL AND t.origin = 'LGA';
