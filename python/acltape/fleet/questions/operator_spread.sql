-- question: Which operators take another time on some ranks of one role?
-- answer: {op} takes {usual_us:.3f} us on rank {rank} of run {run}, {over_percent:+.1f} % of what it takes on the {ranks} ranks of its role (noise {noise_percent:.1f} %), in call {call_id} for the first time.
-- none: Each operator takes the same time on all ranks of a role.
-- needs: (SELECT s.run FROM step s JOIN role r ON r.run = s.run AND r.rank = s.rank GROUP BY s.run, r.role HAVING count(DISTINCT s.rank) > 3 AND count(DISTINCT s.step) > 7) runs: four ranks of one role have eight steps
-- next: acltape query {trace} "SELECT * FROM top_ops WHERE op = '{op}'"
WITH times AS (SELECT * FROM op_usual),
usual AS (
  SELECT run, role, op, count(*) AS ranks, median(usual_ns) AS usual_ns FROM times GROUP BY run, role, op),
spread AS (
  SELECT m.run, m.role, m.op, 1.4826 * median(abs(m.usual_ns - u.usual_ns)) AS spread_ns
  FROM times m JOIN usual u ON u.run = m.run AND u.role = m.role AND u.op = m.op
  GROUP BY m.run, m.role, m.op)
SELECT m.run, m.rank, m.role, m.op, u.ranks, m.samples, m.calls, m.usual_ns / 1e3 AS usual_us,
  100 * (m.usual_ns / u.usual_ns - 1) AS over_percent,
  100 * (d.spread_ns + m.error_ns) / u.usual_ns AS noise_percent, m.call_id, n.line, m.trace,
  CASE WHEN u.ranks > 3 AND m.samples > 7 AND abs(m.usual_ns - u.usual_ns) > 0.02 * u.usual_ns
    AND abs(m.usual_ns - u.usual_ns) > 8 * (d.spread_ns + m.error_ns)
    AND m.calls * abs(m.usual_ns - u.usual_ns) > 0.001 * m.rank_ns THEN 1 ELSE 0 END AS finding
FROM times m
JOIN usual u ON u.run = m.run AND u.role = m.role AND u.op = m.op
JOIN spread d ON d.run = m.run AND d.role = m.role AND d.op = m.op
LEFT JOIN call_line n ON n.run = m.run AND n.rank = m.rank AND n.call_id = m.call_id
WHERE u.usual_ns > 0
ORDER BY finding DESC, m.calls * abs(m.usual_ns - u.usual_ns) DESC, m.run, m.rank, m.op
