-- The digests of the results of calls in steps. `place` counts those of one operator, argument and shape in a step, and
-- of one call by the order in which their buffers were made; `places` is how many there are.
SELECT s.run, s.rank, r.role, r.trace, c.step, o.op, s.position, coalesce(l.shape, '') AS shape, s.digest, s.call_id,
  row_number() OVER (PARTITION BY s.run, s.rank, c.step, o.op, s.position, coalesce(l.shape, '')
    ORDER BY s.call_id, s.tensor_id) AS place,
  count(*) OVER (PARTITION BY s.run, s.rank, c.step, o.op, s.position, coalesce(l.shape, '')) AS places
FROM snapshot s
JOIN call_row c ON c.run = s.run AND c.rank = s.rank AND c.call_id = s.call_id
JOIN signature g ON g.run = c.run AND g.rank = c.rank AND g.signature_id = c.signature_id
JOIN op_name o ON o.run = g.run AND o.rank = g.rank AND o.op_id = g.op_id
JOIN role r ON r.run = s.run AND r.rank = s.rank
LEFT JOIN layout l ON l.run = s.run AND l.rank = s.rank AND l.layout_id = (s.tensor_id & 16777215)
WHERE s.moment = 'after' AND c.step IS NOT NULL AND s.digest IS NOT NULL
