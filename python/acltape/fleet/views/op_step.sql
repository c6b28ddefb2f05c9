-- The mean time of the leaves of each operator in each step of each rank: the samples of which noise is known.
SELECT run, rank, op, step, count(*) AS calls, avg(duration_ns) AS mean_ns, min(call_id) AS first_call
FROM (
  SELECT c.run, c.rank, o.op, coalesce(c.step, -1) AS step, c.duration_ns, c.call_id
  FROM call_row c
  JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
  JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
  WHERE (c.bits & 4) <> 0) leaves
GROUP BY run, rank, op, step
