-- What the leaves of each signature add up to: from the totals of a trace, else from its calls.
SELECT run, rank, signature_id, leaves AS calls, total_ns, min_ns, max_ns FROM signature_total WHERE leaves > 0
UNION ALL
SELECT c.run, c.rank, c.signature_id, count(*), CAST(sum(c.duration_ns) AS BIGINT), min(c.duration_ns),
  max(c.duration_ns)
FROM call_row c
JOIN (SELECT run, rank FROM part EXCEPT SELECT run, rank FROM signature_total) p
  ON p.run = c.run AND p.rank = c.rank
WHERE (c.bits & 4) <> 0
GROUP BY c.run, c.rank, c.signature_id
