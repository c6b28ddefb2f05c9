-- The digests of the results of calls in steps; `place` counts those of one operator and argument in a step.
SELECT s.run, s.rank, r.role, r.trace, c.step, o.op, s.position, s.digest, s.call_id,
  row_number() OVER (PARTITION BY s.run, s.rank, c.step, o.op, s.position ORDER BY s.call_id) AS place
FROM snapshot s
JOIN call_row c ON c.run = s.run AND c.rank = s.rank AND c.call_id = s.call_id
JOIN signature g ON g.run = c.run AND g.rank = c.rank AND g.signature_id = c.signature_id
JOIN op_name o ON o.run = g.run AND o.rank = g.rank AND o.op_id = g.op_id
JOIN role r ON r.run = s.run AND r.rank = s.rank
WHERE s.moment = 'after' AND c.step IS NOT NULL AND s.digest IS NOT NULL
