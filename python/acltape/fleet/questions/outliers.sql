-- question: Which ranks of which runs stand out among all runs of a branch?
-- answer: {op} takes {mean_us:.3f} us on rank {rank} of run {run}, {over_percent:+.1f} % of what it takes in the {parts} ranks of all runs of its branch (noise {noise_percent:.1f} %).
-- none: No rank stands out among all runs of its branch.
-- needs: (SELECT label FROM part GROUP BY label HAVING count(*) > 3) roles: four ranks, of one run or of several, have one label
-- next: acltape query {trace} "SELECT * FROM top_ops WHERE op = '{op}'"
WITH means AS (
  SELECT m.run, m.rank, r.role, r.trace, m.op, m.calls, m.total_ns, m.mean_ns
  FROM op_mean m JOIN role r ON r.run = m.run AND r.rank = m.rank),
usual AS (SELECT role, op, count(*) AS parts, median(mean_ns) AS usual_ns FROM means GROUP BY role, op),
spread AS (
  SELECT m.role, m.op, median(abs(m.mean_ns - u.usual_ns)) AS spread_ns
  FROM means m JOIN usual u ON u.role = m.role AND u.op = m.op GROUP BY m.role, m.op),
whole AS (SELECT run, rank, sum(total_ns) AS total_ns FROM means GROUP BY run, rank)
SELECT m.run, m.rank, m.role, m.op, u.parts, m.calls, m.mean_ns / 1e3 AS mean_us,
  100 * (m.mean_ns / u.usual_ns - 1) AS over_percent, 148.26 * d.spread_ns / u.usual_ns AS noise_percent, m.trace,
  CASE WHEN u.parts > 3 AND abs(m.mean_ns - u.usual_ns) > 0.05 * u.usual_ns
    AND abs(m.mean_ns - u.usual_ns) > 10 * 1.4826 * d.spread_ns
    AND m.calls * abs(m.mean_ns - u.usual_ns) > 0.001 * w.total_ns THEN 1 ELSE 0 END AS finding
FROM means m
JOIN usual u ON u.role = m.role AND u.op = m.op
JOIN spread d ON d.role = m.role AND d.op = m.op
JOIN whole w ON w.run = m.run AND w.rank = m.rank
WHERE u.usual_ns > 0
ORDER BY finding DESC, m.calls * abs(m.mean_ns - u.usual_ns) DESC, m.run, m.rank, m.op
