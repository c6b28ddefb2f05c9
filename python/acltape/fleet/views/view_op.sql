-- Operators whose result shares the buffer of an argument and writes nothing, as the view `view_op` of a trace.
SELECT run, rank, op_id FROM op
WHERE instr(substr(schema, instr(schema, '->')), '(a') > 0 AND instr(substr(schema, instr(schema, '->')), '!') = 0
  OR name IN ('aten::_unsafe_view', 'aten::lift', 'aten::lift_fresh')
