-- question: Which share of its steps does each rank execute as graphs?
-- answer: Rank {rank} of run {run} executes graphs in {percent:.0f} % of its {steps} steps, the ranks of its role in {usual_percent:.0f} %; step {step} is the first without one and begins with call {call_id}.
-- none: All ranks of a role execute graphs in the same share of their steps.
-- needs: (SELECT s.run FROM step s JOIN role r ON r.run = s.run AND r.rank = s.rank GROUP BY s.run, r.role HAVING count(DISTINCT s.rank) > 2) runs: three ranks of one role have steps
-- next: acltape query {trace} --calls step:{step} --name capture_breaks
WITH executed AS (
  SELECT c.run, c.rank, c.step, count(*) AS executions
  FROM call_row c
  JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
  JOIN op o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
  WHERE o.name LIKE 'aclmdlRIExecute%' AND c.step IS NOT NULL
  GROUP BY c.run, c.rank, c.step),
shares AS (
  SELECT t.run, t.rank, r.role, r.trace, count(*) AS steps, count(e.step) AS in_graphs,
    coalesce(CAST(sum(e.executions) AS BIGINT), 0) AS executions, 1e2 * count(e.step) / count(*) AS percent,
    min(CASE WHEN e.step IS NULL THEN t.step END) AS step,
    min(CASE WHEN e.step IS NULL THEN t.first_call END) AS call_id
  FROM step t
  JOIN role r ON r.run = t.run AND r.rank = t.rank
  LEFT JOIN executed e ON e.run = t.run AND e.rank = t.rank AND e.step = t.step
  GROUP BY t.run, t.rank, r.role, r.trace),
usual AS (SELECT run, role, count(*) AS ranks, median(percent) AS percent FROM shares GROUP BY run, role)
SELECT s.run, s.rank, s.role, s.steps, s.in_graphs, s.executions, s.percent, u.percent AS usual_percent, s.step,
  s.call_id, n.line, s.trace,
  CASE WHEN u.ranks > 2 AND s.percent < u.percent - 10 THEN 1 ELSE 0 END AS finding
FROM shares s
JOIN usual u ON u.run = s.run AND u.role = s.role
LEFT JOIN call_line n ON n.run = s.run AND n.rank = s.rank AND n.call_id = s.call_id
ORDER BY s.percent, s.run, s.rank
