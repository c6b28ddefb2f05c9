-- The mean time of the leaves of each operator in each step of each rank: the samples of which noise is known.
SELECT t.run, t.rank, o.op, t.step, CAST(sum(t.calls) AS BIGINT) AS calls,
  CAST(sum(t.total_ns) AS DOUBLE) / CAST(sum(t.calls) AS DOUBLE) AS mean_ns, min(t.first_call) AS first_call
FROM (
  SELECT run, rank, signature_id, coalesce(step, -1) AS step, count(*) AS calls, sum(duration_ns) AS total_ns,
    min(call_id) AS first_call
  FROM call_row WHERE (bits & 4) <> 0 GROUP BY run, rank, signature_id, coalesce(step, -1)) t
JOIN signature s ON s.run = t.run AND s.rank = t.rank AND s.signature_id = t.signature_id
JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
GROUP BY t.run, t.rank, o.op, t.step
