-- The mean time of the leaves of each operator on each rank.
SELECT t.run, t.rank, o.op, CAST(sum(t.calls) AS BIGINT) AS calls, CAST(sum(t.total_ns) AS BIGINT) AS total_ns,
  CAST(sum(t.total_ns) AS DOUBLE) / CAST(sum(t.calls) AS DOUBLE) AS mean_ns
FROM signature_sum t
JOIN signature s ON s.run = t.run AND s.rank = t.rank AND s.signature_id = t.signature_id
JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
GROUP BY t.run, t.rank, o.op
