-- question: Which operators take longer than in the run before?
-- answer: {op} takes {mean_us:.3f} us in run {run}, {change_percent:+.2f} % against run {before} (noise {noise_percent:.2f} %), over {samples} steps of ranks; it is called in step {step} of rank {rank}, call {call_id}.
-- none: No operator takes longer than in the run before.
-- needs: regression: there are two runs of one role
-- next: acltape query {trace} "SELECT * FROM call WHERE op = '{op}' ORDER BY duration_ns DESC LIMIT 20"
WITH samples AS (
  SELECT r.role, m.run, m.op, count(*) AS samples, sum(m.calls) AS calls, avg(m.mean_ns) AS mean_ns,
    coalesce(stddev_samp(m.mean_ns), 0) / sqrt(count(*)) AS error_ns, max_by(m.rank, m.mean_ns) AS rank,
    max_by(m.step, m.mean_ns) AS step, max_by(m.first_call, m.mean_ns) AS call_id
  FROM op_step m JOIN role r ON r.run = m.run AND r.rank = m.rank
  GROUP BY r.role, m.run, m.op),
whole AS (SELECT role, run, sum(calls * mean_ns) AS total_ns FROM samples GROUP BY role, run)
SELECT b.run, b.role, o.before, b.op, b.samples, b.mean_ns / 1e3 AS mean_us,
  100 * (b.mean_ns / a.mean_ns - 1) AS change_percent,
  100 * sqrt(a.error_ns * a.error_ns + b.error_ns * b.error_ns) / a.mean_ns AS noise_percent, b.rank, b.step,
  b.call_id, n.line, r.trace,
  CASE WHEN a.samples > 3 AND b.samples > 3 AND b.mean_ns > 1.005 * a.mean_ns
    AND b.mean_ns - a.mean_ns > 5 * sqrt(a.error_ns * a.error_ns + b.error_ns * b.error_ns)
    AND b.calls * (b.mean_ns - a.mean_ns) > 0.0005 * w.total_ns THEN 1 ELSE 0 END AS finding
FROM run_order o
JOIN samples b ON b.role = o.role AND b.run = o.run
JOIN samples a ON a.role = o.role AND a.run = o.before AND a.op = b.op
JOIN whole w ON w.role = b.role AND w.run = b.run
LEFT JOIN call_line n ON n.run = b.run AND n.rank = b.rank AND n.call_id = b.call_id
LEFT JOIN role r ON r.run = b.run AND r.rank = b.rank
WHERE a.mean_ns > 0
ORDER BY finding DESC, b.calls * (b.mean_ns - a.mean_ns) DESC, b.run, b.op
