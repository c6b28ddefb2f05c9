-- Operators that end a captured region wherever they are met, as the view `barrier_op` of a trace. The name in a rule
-- may end in a star.
SELECT o.run, o.rank, o.op_id, r.code, r.reason
FROM op o
JOIN barrier_rule r ON r.run = o.run AND r.rank = o.rank
  AND (r.op_name IN (o.name, o.name || '.' || o.overload)
    OR right(r.op_name, 1) = '*'
      AND substr(o.name || '.' || o.overload, 1, length(r.op_name) - 1) = substr(r.op_name, 1, length(r.op_name) - 1))
UNION ALL
SELECT o.run, o.rank, o.op_id, CAST(NULL AS BIGINT), 'unknown operator: what an extension does is not known'
FROM op o
LEFT JOIN barrier_rule r ON r.run = o.run AND r.rank = o.rank
  AND (r.op_name = o.name OR right(r.op_name, 1) = '*'
    AND substr(o.name, 1, length(r.op_name) - 1) = substr(r.op_name, 1, length(r.op_name) - 1))
WHERE o.dialect = 'aten' AND r.op_name IS NULL
  AND substr(o.name, 1, instr(o.name, '::') - 1) NOT IN ('aten', 'npu', 'prims')
