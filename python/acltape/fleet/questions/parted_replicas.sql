-- question: Which replicas part, and since when?
-- answer: In run {run} the result of {op} (argument {position}) is equal on the {ranks} ranks of its role up to step {equal_until}, and rank {rank} has another one from step {step} on, in call {call_id}.
-- none: What was equal on all ranks of a role stays equal.
-- needs: (SELECT step FROM result_digest GROUP BY run, role, step HAVING count(DISTINCT rank) > 1) steps: several ranks of one role have digests of results (record with --payload digest) and steps
-- next: acltape query {trace} "SELECT * FROM snapshot WHERE call_id = {call_id}"
WITH held AS (
  SELECT run, role, step, op, position, shape, place, digest, count(*) AS ranks, min(rank) AS rank,
    min(places) AS fewest, max(places) AS most
  FROM result_digest GROUP BY run, role, step, op, position, shape, place, digest),
steps AS ( -- Ranks with another number of results in a step are in other places of it: these are not compared.
  SELECT run, role, step, op, position, shape, place, sum(ranks) AS ranks, count(*) AS contents,
    max_by(digest, ranks * 1000000 - rank) AS usual
  FROM held GROUP BY run, role, step, op, position, shape, place HAVING sum(ranks) > 1 AND min(fewest) = max(most)),
parting AS (
  SELECT run, role, op, position, shape, place, max(CASE WHEN contents = 1 THEN step END) AS equal_until,
    min(CASE WHEN contents > 1 THEN step END) AS step,
    sum(CASE WHEN contents = 1 THEN 1 ELSE 0 END) AS equal_steps
  FROM steps GROUP BY run, role, op, position, shape, place)
SELECT x.run, x.rank, x.role, x.op, x.position, s.ranks, p.equal_until, p.equal_steps, x.step, x.call_id, n.line,
  x.trace, 1 AS finding
FROM parting p
JOIN steps s ON s.run = p.run AND s.role = p.role AND s.op = p.op AND s.position = p.position AND s.shape = p.shape
  AND s.place = p.place AND s.step = p.step
JOIN result_digest x ON x.run = s.run AND x.role = s.role AND x.op = s.op AND x.position = s.position
  AND x.shape = s.shape AND x.place = s.place AND x.step = s.step AND x.digest <> s.usual
LEFT JOIN call_line n ON n.run = x.run AND n.rank = x.rank AND n.call_id = x.call_id
WHERE p.equal_steps > 1 AND p.equal_until < p.step
ORDER BY x.run, x.step, x.call_id, x.rank
