-- Streams without times of their own; the answer does not depend on the clock.
CREATE STREAM clicks (page STRING, n INT) INTERNAL TIMESTAMP AS seen
  FROM csv OPTIONS (path 'inputs/clicks.csv');
CREATE STREAM taps (page STRING, n INT) LATENT TIMESTAMP
  FROM csv OPTIONS (path 'inputs/taps.csv');

CREATE QUERY clicked AS SELECT page, n + 1 AS next FROM clicks WHERE n > 0;
CREATE QUERY tapped AS SELECT page FROM taps WHERE page LIKE 'h%';
