-- The first leaf of each operator on each rank.
SELECT t.run, t.rank, o.op, min(t.first_call) AS call_id
FROM signature_total t
JOIN signature s ON s.run = t.run AND s.rank = t.rank AND s.signature_id = t.signature_id
JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
WHERE t.leaves > 0
GROUP BY t.run, t.rank, o.op
