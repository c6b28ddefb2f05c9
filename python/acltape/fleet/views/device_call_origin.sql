-- Where each operator of the device comes from, as the view `device_call_origin` of a trace.
WITH RECURSIVE named AS (
  SELECT c.run, c.rank, c.call_id, c.parent_id, o.dialect
  FROM call_row c
  JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
  JOIN op o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id),
launched AS (
  SELECT c.run, c.rank, c.call_id, c.op, c.step, c.stream_id, c.model_id, c.scope_id, c.stack_id,
    a.call_id AS aten_call, a.op AS aten_op, a.phase, a.scope_id AS aten_scope, a.parent_id AS around
  FROM call c
  JOIN op o ON o.run = c.run AND o.rank = c.rank AND o.op_id = c.op_id AND o.dialect = 'aclnn'
  LEFT JOIN (
    SELECT a.run, a.rank, a.call_id, a.op, a.phase, a.scope_id, a.parent_id
    FROM call a JOIN op n ON n.run = a.run AND n.rank = a.rank AND n.op_id = a.op_id AND n.dialect = 'aten') a
    ON a.run = c.run AND a.rank = c.rank AND a.call_id = c.parent_id
  WHERE c.leaf = 1),
up(run, rank, origin, call_id, parent_id, dialect, depth) AS (
  SELECT a.run, a.rank, a.aten_call, n.call_id, n.parent_id, n.dialect, 0
  FROM (SELECT DISTINCT run, rank, aten_call, around FROM launched WHERE around IS NOT NULL) a
  JOIN named n ON n.run = a.run AND n.rank = a.rank AND n.call_id = a.around
  UNION ALL
  SELECT u.run, u.rank, u.origin, n.call_id, n.parent_id, n.dialect, u.depth + 1
  FROM up u
  JOIN named n ON n.run = u.run AND n.rank = u.rank AND n.call_id = u.parent_id
  WHERE u.dialect <> 'autograd' AND n.call_id < u.call_id AND u.depth < 256),
child_stack AS (
  SELECT run, rank, parent_id, min_by(stack_id, call_id) AS stack_id
  FROM call_row WHERE parent_id IS NOT NULL AND stack_id IS NOT NULL GROUP BY run, rank, parent_id),
followed AS (
  SELECT l.run, l.rank, l.call_id, l.op, l.step, l.stream_id, l.model_id, l.aten_call, l.aten_op, l.phase,
    n.op AS backward_node, n.forward_call, coalesce(f.scope_id, l.aten_scope, l.scope_id) AS around,
    coalesce(l.stack_id, f.stack_id, d.stack_id) AS place
  FROM launched l
  LEFT JOIN up u ON u.run = l.run AND u.rank = l.rank AND u.origin = l.aten_call AND u.dialect = 'autograd'
  LEFT JOIN call n ON n.run = u.run AND n.rank = u.rank AND n.call_id = u.call_id
  LEFT JOIN call_row f ON f.run = n.run AND f.rank = n.rank AND f.call_id = n.forward_call
  LEFT JOIN child_stack d ON d.run = n.run AND d.rank = n.rank AND d.parent_id = n.forward_call)
SELECT w.run, w.rank, w.call_id, w.op, w.step, w.stream_id, w.model_id, w.aten_call, w.aten_op, w.phase,
  w.backward_node, w.forward_call, m.module, k.file, k.line, k.function
FROM followed w
LEFT JOIN module_of_scope m ON m.run = w.run AND m.rank = w.rank AND m.scope_id = w.around
LEFT JOIN stack_location k ON k.run = w.run AND k.rank = w.rank AND k.stack_id = w.place
