-- question: Which rank do the others wait for?
-- answer: In run {run} the others wait longest for rank {rank} in {most_in} of {windows} {counted} with collectives of {communicator}, {caused_ms:.3f} ms in all; the longest wait is in step {step}, call {call_id}.
-- none: No rank is waited for more often than the others.
-- needs: meeting: several ranks of one run have the collectives of a communicator (record with the ACL level)
-- next: acltape query {trace} "SELECT * FROM call WHERE call_id BETWEEN {call_id} - 20 AND {call_id}"
WITH met AS (
  SELECT run, communicator, number, min(ranks) AS ranks, sum(waited_ns) AS caused_ns, min(transfer_ns) AS transfer_ns,
    min_by(rank, inside_ns) AS rank, min_by(call_id, inside_ns) AS call_id, min_by(step, inside_ns) AS step
  FROM meeting GROUP BY run, communicator, number),
caused AS ( -- A rank that is late delays the first collective of a step, and nobody has to wait in the others.
  SELECT run, communicator, coalesce(step, -1 - number) AS place, rank, min(ranks) AS ranks, count(*) AS last,
    sum(caused_ns) AS caused_ns, sum(transfer_ns) AS transfers_ns, max(caused_ns) AS longest_ns,
    max_by(call_id, caused_ns) AS call_id, max_by(step, caused_ns) AS step
  FROM met GROUP BY run, communicator, coalesce(step, -1 - number), rank),
ordered AS (
  SELECT run, communicator, rank, ranks, last, caused_ns, longest_ns, call_id, step,
    row_number() OVER (PARTITION BY run, communicator, place ORDER BY caused_ns DESC, rank) AS place
  FROM caused),
sums AS (
  SELECT run, communicator, count(DISTINCT place) AS windows, sum(transfers_ns) AS transfers_ns,
    CASE WHEN min(place) < 0 THEN 'collectives' ELSE 'steps' END AS counted
  FROM caused GROUP BY run, communicator),
ranks AS (
  SELECT run, communicator, rank, min(ranks) AS ranks, CAST(sum(last) AS BIGINT) AS last,
    sum(CASE WHEN place = 1 THEN 1 ELSE 0 END) AS most_in, sum(caused_ns) AS caused_ns,
    max_by(call_id, longest_ns) AS call_id, max_by(step, longest_ns) AS step
  FROM ordered GROUP BY run, communicator, rank)
SELECT k.run, k.rank, k.communicator, s.windows, s.counted, CAST(k.most_in AS BIGINT) AS most_in, k.last,
  k.caused_ns / 1e6 AS caused_ms, k.step, k.call_id, n.line, r.trace,
  -- By chance each rank is in as many as the others, with the deviation of a binomial distribution.
  CASE WHEN s.windows >= 8 AND k.ranks > 1 AND k.most_in > 0.5 * s.windows
    AND k.most_in > 1e0 * s.windows / k.ranks + 3.5 * sqrt(1e0 * s.windows * (k.ranks - 1)) / k.ranks
    AND k.caused_ns > 0.05 * (k.ranks - 1) * s.transfers_ns THEN 1 ELSE 0 END AS finding
FROM ranks k
JOIN sums s ON s.run = k.run AND s.communicator = k.communicator
LEFT JOIN call_line n ON n.run = k.run AND n.rank = k.rank AND n.call_id = k.call_id
LEFT JOIN role r ON r.run = k.run AND r.rank = k.rank
ORDER BY k.caused_ns DESC, k.run, k.rank, k.communicator
