-- question: Which rank do the others wait for?
-- answer: In run {run} the others wait for rank {rank} in {last_percent:.0f} % of the collectives of {communicator}, {caused_ms:.3f} ms in all; the longest wait is in step {step}, call {call_id}.
-- none: No rank is waited for more often than the others.
-- needs: meeting: several ranks of one run have the collectives of a communicator (record with the ACL level)
-- next: acltape query {trace} "SELECT * FROM call WHERE call_id BETWEEN {call_id} - 20 AND {call_id}"
WITH met AS (
  SELECT run, communicator, number, min(ranks) AS ranks, sum(waited_ns) AS caused_ns, min(transfer_ns) AS transfer_ns,
    min_by(rank, inside_ns) AS rank, min_by(call_id, inside_ns) AS call_id, min_by(step, inside_ns) AS step
  FROM meeting GROUP BY run, communicator, number),
sums AS (
  SELECT run, communicator, count(*) AS meetings, sum(caused_ns) AS all_ns, sum(transfer_ns) AS transfers_ns
  FROM met GROUP BY run, communicator),
ranks AS (
  SELECT run, communicator, rank, min(ranks) AS ranks, count(*) AS last, sum(caused_ns) AS caused_ns,
    max_by(call_id, caused_ns) AS call_id, max_by(step, caused_ns) AS step
  FROM met GROUP BY run, communicator, rank)
SELECT k.run, k.rank, k.communicator, s.meetings, k.last, 1e2 * k.last / s.meetings AS last_percent,
  k.caused_ns / 1e6 AS caused_ms, k.step, k.call_id, n.line, r.trace,
  CASE WHEN s.meetings >= 8 AND k.ranks > 2 AND k.last > 0.5 * s.meetings AND k.last > 2 * (s.meetings / k.ranks)
    AND k.caused_ns > 0.05 * (k.ranks - 1) * s.transfers_ns THEN 1 ELSE 0 END AS finding
FROM ranks k
JOIN sums s ON s.run = k.run AND s.communicator = k.communicator
LEFT JOIN call_line n ON n.run = k.run AND n.rank = k.rank AND n.call_id = k.call_id
LEFT JOIN role r ON r.run = k.run AND r.rank = k.rank
ORDER BY k.caused_ns DESC, k.run, k.rank, k.communicator
