-- One row for each intercepted call, as the view `call` of a trace.
SELECT c.run, c.rank, c.call_id, c.parent_id, s.op_id, o.op, c.thread_id, x.stream_id, c.step,
  CASE (c.bits & 3) WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' ELSE 'optimizer' END AS phase,
  c.scope_id, coalesce(c.stack_id, x.stack_id) AS stack_id, c.begin_ns + b.base_ns AS begin_ns,
  c.begin_ns + c.duration_ns + b.base_ns AS end_ns, c.duration_ns, x.prepare_ns, x.launch_ns,
  coalesce(x.status, 0) AS status, x.model_id, x.forward_call, ((c.bits >> 2) & 1) AS leaf,
  CASE WHEN (c.bits & 4) <> 0 THEN coalesce(nullif((c.bits >> 3), 0) - 1, 1 + q.device) END AS device,
  c.signature_id, coalesce(c.buffers, '[]') AS buffers
FROM call_row c
JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
LEFT JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
LEFT JOIN base_time b ON b.run = c.run AND b.rank = c.rank
LEFT JOIN call_extra x ON x.run = c.run AND x.rank = c.rank AND x.call_id = c.call_id
LEFT JOIN stream_row q ON q.run = x.run AND q.rank = x.rank AND q.stream_id = x.stream_id
