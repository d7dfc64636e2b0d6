-- A join of three streams: timetable, departure and landing of a flight in one row.
CREATE STREAM timetable (flight STRING, origin STRING, dest STRING, scheduled TIMESTAMP)
  TIMESTAMP BY scheduled ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/timetable.csv');
CREATE STREAM departures (flight STRING, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');
CREATE STREAM landings (flight STRING, landed TIMESTAMP)
  TIMESTAMP BY landed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/landings.csv');

CREATE QUERY journeys AS
  SELECT t.flight, t.scheduled, d.departed, l.landed,
         (unix_seconds(l.landed) - unix_seconds(d.departed)) div 60 AS minutes
  FROM timetable t
    JOIN departures d ON t.flight = d.flight
      AND d.departed BETWEEN t.scheduled - INTERVAL 1 HOUR AND t.scheduled + INTERVAL 12 HOURS
    JOIN landings l ON t.flight = l.flight
      AND l.landed BETWEEN d.departed AND d.departed + INTERVAL 12 HOURS
  WHERE t.origin = 'JFK' AND t.dest = 'SJU' AND d.departed > t.scheduled;
