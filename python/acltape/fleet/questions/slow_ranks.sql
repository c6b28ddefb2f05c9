-- question: Which ranks are the slowest, and where does their time go?
-- answer: Rank {rank} of run {run} takes {step_ms:.3f} ms for a step, {over_percent:.1f} % more than the ranks of its role do (noise {noise_percent:.1f} %); {op} takes {excess_ms:.3f} ms of that, in call {call_id} for the first time. Its slowest step is {step}.
-- none: No rank is slower than the others of its role.
-- needs: (SELECT s.run FROM step_summary s JOIN role r ON r.run = s.run AND r.rank = s.rank GROUP BY s.run, r.role HAVING count(DISTINCT s.rank) > 2) runs: three ranks of one role have steps
-- next: acltape query {trace} --calls step:{step} --name top_ops
WITH times AS (
  SELECT s.run, s.rank, r.role, r.trace, count(*) AS steps, avg(s.wall_ns) AS mean_ns,
    coalesce(stddev_samp(s.wall_ns), 0) / sqrt(count(*)) AS error_ns, max_by(s.step, s.wall_ns) AS step
  FROM step_summary s JOIN role r ON r.run = s.run AND r.rank = s.rank
  WHERE s.wall_ns IS NOT NULL GROUP BY s.run, s.rank, r.role, r.trace),
usual AS (SELECT run, role, count(*) AS ranks, median(mean_ns) AS usual_ns FROM times GROUP BY run, role),
usual_op AS (
  SELECT m.run, r.role, m.op, median(m.total_ns) AS usual_ns
  FROM op_mean m JOIN role r ON r.run = m.run AND r.rank = m.rank GROUP BY m.run, r.role, m.op),
excess AS (
  SELECT m.run, m.rank, m.op, m.total_ns - u.usual_ns AS excess_ns,
    row_number() OVER (PARTITION BY m.run, m.rank ORDER BY m.total_ns - u.usual_ns DESC, m.op) AS place
  FROM op_mean m
  JOIN role r ON r.run = m.run AND r.rank = m.rank
  JOIN usual_op u ON u.run = m.run AND u.role = r.role AND u.op = m.op)
SELECT t.run, t.rank, t.role, t.steps, t.mean_ns / 1e6 AS step_ms, 100 * (t.mean_ns / u.usual_ns - 1) AS over_percent,
  100 * t.error_ns / t.mean_ns AS noise_percent, e.op, e.excess_ns / 1e6 / t.steps AS excess_ms, t.step, f.call_id,
  n.line, t.trace,
  CASE WHEN u.ranks > 2 AND t.mean_ns > 1.02 * u.usual_ns AND t.mean_ns - u.usual_ns > 4 * t.error_ns THEN 1 ELSE 0
  END AS finding
FROM times t
JOIN usual u ON u.run = t.run AND u.role = t.role
LEFT JOIN excess e ON e.run = t.run AND e.rank = t.rank AND e.place = 1
LEFT JOIN op_first f ON f.run = t.run AND f.rank = t.rank AND f.op = e.op
LEFT JOIN call_line n ON n.run = t.run AND n.rank = t.rank AND n.call_id = f.call_id
WHERE u.usual_ns > 0
ORDER BY over_percent DESC, t.run, t.rank
