-- Traffic per minute over three links (Q1 of Li et al., VLDB 2008): two busy ones and a sparse control link that is
-- silent for over a minute. The counts of a window are whole, whichever link is slow or silent.
CREATE STREAM control (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  ETS ON DEMAND SKEW INTERVAL 5 SECONDS
  FROM generate OPTIONS (rate '1', seconds '240', seed '1', keys '4', disorder '2', silent_from '60', silent_to '150');
CREATE STREAM main1 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM generate OPTIONS (rate '200', seconds '240', seed '2', keys '4');
CREATE STREAM main2 (srcIP STRING, destIP STRING, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM generate OPTIONS (rate '200', seconds '240', seed '3', keys '4', lag '20');

SELECT window_start, window_end, count(*) AS packets
FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];

SELECT window_start, window_end, srcIP, destIP, count(*) AS packets, sum(len) AS bytes
FROM control UNION main1 UNION main2 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]
WHERE len > 0
GROUP BY srcIP, destIP
HAVING count(*) > 1140;
