-- question: How much memory does each rank use at most?
-- answer: Rank {rank} of run {run} uses {peak_mib:.1f} MiB of device {device} at its peak, {over_percent:.1f} % more than the ranks of its role do; call {call_id} took the last block of it.
-- none: All ranks of a role use the same memory.
-- needs: (SELECT run FROM part GROUP BY run, label HAVING count(*) > 2) runs: three ranks of one role are in a run
-- next: acltape query {trace} "SELECT * FROM buffer WHERE alloc_call <= {call_id} ORDER BY bytes DESC LIMIT 20"
WITH changes AS (
  SELECT run, rank, (coalesce(flags, 0) >> 8) AS device, alloc_ns AS moment, bytes AS change, alloc_call AS call_id
  FROM buffer_row WHERE alloc_ns IS NOT NULL AND block IS NULL
  UNION ALL
  SELECT run, rank, (coalesce(flags, 0) >> 8), alloc_ns + life_ns, -bytes, CAST(NULL AS BIGINT)
  FROM buffer_row WHERE alloc_ns IS NOT NULL AND life_ns IS NOT NULL AND block IS NULL),
alive AS (
  SELECT run, rank, device, call_id, sum(change) OVER (PARTITION BY run, rank, device ORDER BY moment) AS bytes
  FROM changes),
compared AS (SELECT a.*, max(bytes) OVER (PARTITION BY run, rank, device) AS most FROM alive a),
peaks AS (
  SELECT a.run, a.rank, r.role, r.trace, a.device, CAST(max(a.bytes) AS BIGINT) AS peak_bytes,
    min(CASE WHEN a.bytes = a.most THEN a.call_id END) AS call_id
  FROM compared a JOIN role r ON r.run = a.run AND r.rank = a.rank
  GROUP BY a.run, a.rank, r.role, r.trace, a.device),
usual AS (
  SELECT run, role, device > 0 AS on_device, count(*) AS ranks, median(peak_bytes) AS bytes
  FROM peaks GROUP BY run, role, device > 0)
SELECT p.run, p.rank, p.role, p.device, p.peak_bytes / 1048576 AS peak_mib,
  100 * (p.peak_bytes / u.bytes - 1) AS over_percent, c.step, p.call_id, n.line, p.trace,
  CASE WHEN u.ranks > 2 AND p.peak_bytes > 1.1 * u.bytes THEN 1 ELSE 0 END AS finding
FROM peaks p
JOIN usual u ON u.run = p.run AND u.role = p.role AND u.on_device = (p.device > 0)
LEFT JOIN call_row c ON c.run = p.run AND c.rank = p.rank AND c.call_id = p.call_id
LEFT JOIN call_line n ON n.run = p.run AND n.rank = p.rank AND n.call_id = p.call_id
WHERE u.bytes > 0
ORDER BY p.peak_bytes DESC, p.run, p.rank, p.device
