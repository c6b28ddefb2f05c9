-- question: Which ranks of which runs stand out among all runs of a branch?
-- answer: {op} takes {usual_us:.3f} us on rank {rank} of run {run}, {over_percent:+.1f} % of what it takes in the {parts} ranks of all runs of its branch (noise {noise_percent:.1f} %), in call {call_id} for the first time.
-- none: No rank stands out among all runs of its branch.
-- needs: (SELECT r.role FROM step s JOIN role r ON r.run = s.run AND r.rank = s.rank GROUP BY r.role HAVING count(DISTINCT s.run || ' ' || CAST(s.rank AS STRING)) > 3 AND count(DISTINCT s.step) > 7) roles: four ranks of one label, of one run or of several, have eight steps
-- next: acltape query {trace} "SELECT * FROM top_ops WHERE op = '{op}'"
WITH times AS (SELECT * FROM op_usual),
usual AS (SELECT role, op, count(*) AS parts, median(usual_ns) AS usual_ns FROM times GROUP BY role, op),
spread AS (
  SELECT m.role, m.op, 1.4826 * median(abs(m.usual_ns - u.usual_ns)) AS spread_ns
  FROM times m JOIN usual u ON u.role = m.role AND u.op = m.op GROUP BY m.role, m.op)
SELECT m.run, m.rank, m.role, m.op, u.parts, m.samples, m.calls, m.usual_ns / 1e3 AS usual_us,
  100 * (m.usual_ns / u.usual_ns - 1) AS over_percent,
  100 * (d.spread_ns + m.error_ns) / u.usual_ns AS noise_percent, m.call_id, n.line, m.trace,
  CASE WHEN u.parts > 3 AND m.samples > 7 AND abs(m.usual_ns - u.usual_ns) > 0.05 * u.usual_ns
    AND abs(m.usual_ns - u.usual_ns) > 10 * (d.spread_ns + m.error_ns)
    AND m.calls * abs(m.usual_ns - u.usual_ns) > 0.001 * m.rank_ns THEN 1 ELSE 0 END AS finding
FROM times m
JOIN usual u ON u.role = m.role AND u.op = m.op
JOIN spread d ON d.role = m.role AND d.op = m.op
LEFT JOIN call_line n ON n.run = m.run AND n.rank = m.rank AND n.call_id = m.call_id
WHERE u.usual_ns > 0
ORDER BY finding DESC, m.calls * abs(m.usual_ns - u.usual_ns) DESC, m.run, m.rank, m.op
