-- Times between two leaves of a thread in which no leaf of that thread ran, as the view `host_gaps` of a trace. A leaf
-- that ends no later than one before it lies inside of that one, and bounds no gap.
SELECT g.run, g.rank, g.gap_ns, g.thread_id, g.call_id AS after_call, g.next_call AS before_call,
  ao.name AS after_op, bo.name AS before_op, g.step, g.end_ns + b.base_ns AS begin_ns
FROM (
  SELECT run, rank, call_id, thread_id, signature_id, step, end_ns,
    lead(begin_ns) OVER (PARTITION BY run, rank, thread_id ORDER BY begin_ns, call_id) - end_ns AS gap_ns,
    lead(call_id) OVER (PARTITION BY run, rank, thread_id ORDER BY begin_ns, call_id) AS next_call,
    lead(signature_id) OVER (PARTITION BY run, rank, thread_id ORDER BY begin_ns, call_id) AS next_signature
  FROM (
    SELECT run, rank, call_id, thread_id, signature_id, step, begin_ns, begin_ns + duration_ns AS end_ns,
      max(begin_ns + duration_ns) OVER (PARTITION BY run, rank, thread_id ORDER BY begin_ns, call_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until
    FROM call_row WHERE (bits & 4) <> 0) leaves
  WHERE busy_until IS NULL OR end_ns > busy_until) g
LEFT JOIN base_time b ON b.run = g.run AND b.rank = g.rank
LEFT JOIN signature sa ON sa.run = g.run AND sa.rank = g.rank AND sa.signature_id = g.signature_id
LEFT JOIN op ao ON ao.run = sa.run AND ao.rank = sa.rank AND ao.op_id = sa.op_id
LEFT JOIN signature sb ON sb.run = g.run AND sb.rank = g.rank AND sb.signature_id = g.next_signature
LEFT JOIN op bo ON bo.run = sb.run AND bo.rank = sb.rank AND bo.op_id = sb.op_id
WHERE g.next_call IS NOT NULL AND g.gap_ns > 0
