-- question: Which operators take another time on some ranks of one role?
-- answer: {op} takes {mean_us:.3f} us on rank {rank} of run {run}, {over_percent:+.1f} % of what it takes on the {ranks} ranks of its role (noise {noise_percent:.1f} %), in call {call_id} for the first time.
-- none: Each operator takes the same time on all ranks of a role.
-- needs: (SELECT run FROM part GROUP BY run, label HAVING count(*) > 3) runs: four ranks of one role are in a run
-- next: acltape query {trace} "SELECT * FROM top_ops WHERE op = '{op}'"
WITH means AS (
  SELECT m.run, m.rank, r.role, r.trace, m.op, m.calls, m.total_ns, m.mean_ns
  FROM op_mean m JOIN role r ON r.run = m.run AND r.rank = m.rank),
usual AS (
  SELECT run, role, op, count(*) AS ranks, median(mean_ns) AS usual_ns FROM means GROUP BY run, role, op),
spread AS (
  SELECT m.run, m.role, m.op, median(abs(m.mean_ns - u.usual_ns)) AS spread_ns
  FROM means m JOIN usual u ON u.run = m.run AND u.role = m.role AND u.op = m.op
  GROUP BY m.run, m.role, m.op),
whole AS (SELECT run, rank, sum(total_ns) AS total_ns FROM means GROUP BY run, rank),
first AS (
  SELECT t.run, t.rank, o.op, min(t.first_call) AS call_id
  FROM signature_total t
  JOIN signature s ON s.run = t.run AND s.rank = t.rank AND s.signature_id = t.signature_id
  JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
  WHERE t.leaves > 0 GROUP BY t.run, t.rank, o.op)
SELECT m.run, m.rank, m.role, m.op, u.ranks, m.calls, m.mean_ns / 1e3 AS mean_us,
  100 * (m.mean_ns / u.usual_ns - 1) AS over_percent, 148.26 * d.spread_ns / u.usual_ns AS noise_percent, f.call_id,
  n.line, m.trace,
  CASE WHEN u.ranks > 3 AND abs(m.mean_ns - u.usual_ns) > 0.02 * u.usual_ns
    AND abs(m.mean_ns - u.usual_ns) > 8 * 1.4826 * d.spread_ns
    AND m.calls * abs(m.mean_ns - u.usual_ns) > 0.001 * w.total_ns THEN 1 ELSE 0 END AS finding
FROM means m
JOIN usual u ON u.run = m.run AND u.role = m.role AND u.op = m.op
JOIN spread d ON d.run = m.run AND d.role = m.role AND d.op = m.op
JOIN whole w ON w.run = m.run AND w.rank = m.rank
LEFT JOIN first f ON f.run = m.run AND f.rank = m.rank AND f.op = m.op
LEFT JOIN call_line n ON n.run = m.run AND n.rank = m.rank AND n.call_id = f.call_id
WHERE u.usual_ns > 0
ORDER BY finding DESC, m.calls * abs(m.mean_ns - u.usual_ns) DESC, m.run, m.rank, m.op
