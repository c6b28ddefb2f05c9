-- The 1,000 longest gaps of each part, as the view `longest_host_gaps` of a trace: from the table `host_gap`, and where
-- a trace has no totals from its calls.
SELECT g.run, g.rank, g.gap_ns, g.thread_id, g.after_call, g.before_call, ao.name AS after_op, bo.name AS before_op,
  a.step, a.begin_ns + a.duration_ns + t.base_ns AS begin_ns
FROM host_gap g
JOIN call_row a ON a.run = g.run AND a.rank = g.rank AND a.call_id = g.after_call
JOIN call_row b ON b.run = g.run AND b.rank = g.rank AND b.call_id = g.before_call
LEFT JOIN base_time t ON t.run = g.run AND t.rank = g.rank
LEFT JOIN signature sa ON sa.run = a.run AND sa.rank = a.rank AND sa.signature_id = a.signature_id
LEFT JOIN op ao ON ao.run = sa.run AND ao.rank = sa.rank AND ao.op_id = sa.op_id
LEFT JOIN signature sb ON sb.run = b.run AND sb.rank = b.rank AND sb.signature_id = b.signature_id
LEFT JOIN op bo ON bo.run = sb.run AND bo.rank = sb.rank AND bo.op_id = sb.op_id
UNION ALL
SELECT run, rank, gap_ns, thread_id, after_call, before_call, after_op, before_op, step, begin_ns
FROM (
  SELECT h.*, row_number() OVER (PARTITION BY h.run, h.rank ORDER BY h.gap_ns DESC, h.after_call) AS place
  FROM host_gaps h
  JOIN (SELECT run, rank FROM part EXCEPT SELECT run, rank FROM table_total WHERE table_name = 'call_row') p
    ON p.run = h.run AND p.rank = h.rank) ordered
WHERE place <= 1000
