-- The usual time of the leaves of each operator on each rank: the median of its steps, which one slow call does not
-- move, and how much that median can be off by chance (its standard error, from the median distance of the steps).
-- `rank_ns` is the time of all its leaves.
WITH medians AS (
  SELECT run, rank, op, count(*) AS samples, CAST(sum(calls) AS BIGINT) AS calls, sum(calls * mean_ns) AS total_ns,
    median(mean_ns) AS usual_ns, min(first_call) AS call_id
  FROM op_step GROUP BY run, rank, op),
distances AS (
  SELECT s.run, s.rank, s.op, median(abs(s.mean_ns - m.usual_ns)) AS distance_ns
  FROM op_step s JOIN medians m ON m.run = s.run AND m.rank = s.rank AND m.op = s.op
  GROUP BY s.run, s.rank, s.op)
SELECT m.run, m.rank, r.role, r.trace, m.op, m.samples, m.calls, m.total_ns, m.usual_ns,
  1.4826 * 1.2533 * d.distance_ns / sqrt(m.samples) AS error_ns, m.call_id,
  sum(m.total_ns) OVER (PARTITION BY m.run, m.rank) AS rank_ns
FROM medians m
JOIN distances d ON d.run = m.run AND d.rank = m.rank AND d.op = m.op
JOIN role r ON r.run = m.run AND r.rank = m.rank
