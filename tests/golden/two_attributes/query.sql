-- One stream by the end and by the start of its flows; a row below either bound is late.
CREATE STREAM flows (link STRING, bytes INT, started TIMESTAMP, ended TIMESTAMP)
  TIMESTAMP BY ended ORDERED ALSO BY started DISORDER INTERVAL 2 MINUTES LATE INTO late_flows
  FROM csv OPTIONS (path 'inputs/flows.csv');

CREATE QUERY by_end AS SELECT window_start, window_end, link, sum(bytes) AS bytes FROM flows [RANGE 1 MINUTE SLIDE 1 MINUTE WA ended] GROUP BY link;
CREATE QUERY by_start AS
  SELECT window_start, window_end, link, count(*) AS flows FROM flows [RANGE 2 MINUTES SLIDE 1 MINUTE WA started] GROUP BY link;
CREATE QUERY late AS SELECT link, bytes FROM late_flows;
