-- One row for each rank in each collective that all ranks of a communicator in the fleet have: how long it was in it,
-- and how long it waited there. No clocks are compared: who came last waited for nobody and was in it for the shortest
-- time, which is taken as the time of the transfer. Times are those of the device where they were recorded, else those
-- of the call on the host.
WITH taken AS (
  SELECT c.run, c.rank, c.communicator, c.number, c.op, c.call_id, c.step, c.sent_bytes, c.received_bytes,
    coalesce(d.device_ns, c.end_ns - c.begin_ns) AS inside_ns,
    CASE WHEN d.device_ns IS NULL THEN 'host' ELSE 'device' END AS clock
  FROM collective c
  LEFT JOIN collective_span d ON d.run = c.run AND d.rank = c.rank AND d.call_id = c.call_id
  WHERE c.model_id IS NULL AND c.peer IS NULL AND c.communicator IS NOT NULL),
met AS (
  SELECT run, communicator, number, count(*) AS ranks, count(DISTINCT op) AS ops, min(inside_ns) AS transfer_ns
  FROM taken GROUP BY run, communicator, number)
SELECT t.run, t.rank, t.communicator, t.number, t.op, t.call_id, t.step, t.clock, m.ranks, t.inside_ns,
  m.transfer_ns, t.inside_ns - m.transfer_ns AS waited_ns,
  greatest(coalesce(t.sent_bytes, 0), coalesce(t.received_bytes, 0)) AS bytes
FROM taken t
JOIN met m ON m.run = t.run AND m.communicator = t.communicator AND m.number = t.number
WHERE m.ranks > 1 AND m.ops = 1
