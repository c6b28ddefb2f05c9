-- What the calls of each step add up to, as the view `step_summary` of a trace: from its totals, else from its calls.
WITH lacking AS (
  SELECT t.run, t.rank, t.step, t.first_call, t.last_call, t.found_by
  FROM step t
  LEFT JOIN step_total x ON x.run = t.run AND x.rank = t.rank AND x.step = t.step AND x.first_call = t.first_call
    AND x.last_call = t.last_call
  WHERE x.step IS NULL)
SELECT t.run, t.rank, t.step, t.first_call, t.last_call, t.found_by, x.calls, x.leaves, x.wall_ns, x.leaf_ns,
  x.signatures, x.backward_leaves, x.breaks
FROM step t
JOIN step_total x ON x.run = t.run AND x.rank = t.rank AND x.step = t.step AND x.first_call = t.first_call
  AND x.last_call = t.last_call
UNION ALL
SELECT t.run, t.rank, t.step, t.first_call, t.last_call, t.found_by, count(c.call_id),
  CAST(sum((c.bits >> 2) & 1) AS BIGINT), max(c.begin_ns + c.duration_ns) - min(c.begin_ns),
  CAST(sum(CASE WHEN (c.bits & 4) <> 0 THEN c.duration_ns ELSE 0 END) AS BIGINT),
  count(DISTINCT CASE WHEN (c.bits & 4) <> 0 THEN c.signature_id END),
  CAST(sum(CASE WHEN (c.bits & 4) <> 0 AND (c.bits & 3) = 1 THEN 1 ELSE 0 END) AS BIGINT),
  CAST(sum(CASE WHEN (c.bits & 4) <> 0 AND k.op_id IS NOT NULL AND ((c.bits >> 3) <> 1 OR d.run IS NULL)
    THEN 1 ELSE 0 END) AS BIGINT)
FROM lacking t
LEFT JOIN call_row c ON c.run = t.run AND c.rank = t.rank AND c.call_id BETWEEN t.first_call AND t.last_call
LEFT JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
LEFT JOIN (SELECT DISTINCT run, rank, op_id FROM barrier_op) k
  ON k.run = s.run AND k.rank = s.rank AND k.op_id = s.op_id
LEFT JOIN on_a_device d ON d.run = c.run AND d.rank = c.rank
GROUP BY t.run, t.rank, t.step, t.first_call, t.last_call, t.found_by
