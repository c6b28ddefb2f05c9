-- One row for each message between two ranks, if both sides have it: its time is that of the side which came last.
WITH sides AS (
  SELECT c.run, c.rank, c.communicator, c.message, c.call_id, c.step, c.item,
    CASE WHEN c.message = 'send' THEN c.communicator_rank ELSE c.peer END AS sender,
    CASE WHEN c.message = 'send' THEN c.peer ELSE c.communicator_rank END AS receiver,
    coalesce(c.sent_bytes, c.received_bytes) AS bytes, coalesce(d.device_ns, c.end_ns - c.begin_ns) AS inside_ns
  FROM collective c
  LEFT JOIN collective_span d ON d.run = c.run AND d.rank = c.rank AND d.call_id = c.call_id
  WHERE c.model_id IS NULL AND c.message IS NOT NULL AND c.communicator IS NOT NULL),
numbered AS (
  SELECT s.*, row_number() OVER (PARTITION BY run, communicator, message, sender, receiver
    ORDER BY call_id, item) AS number
  FROM sides s)
SELECT s.run, s.rank, r.rank AS receiving_rank, s.communicator, s.sender, s.receiver, s.number, s.call_id, s.step,
  s.bytes, least(s.inside_ns, r.inside_ns) AS transfer_ns
FROM numbered s
JOIN numbered r ON r.run = s.run AND r.communicator = s.communicator AND r.sender = s.sender
  AND r.receiver = s.receiver AND r.number = s.number AND r.message = 'recv'
WHERE s.message = 'send' AND r.rank <> s.rank
