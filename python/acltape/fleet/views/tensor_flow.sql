-- Every use of a buffer by a leaf, with the call that last wrote it, as the view `tensor_flow` of a trace.
SELECT u.run, u.rank, u.buffer_id, u.call_id, o.op, u.position, u.name, u.direction,
  CASE WHEN u.direction = 'in' THEN 'consumer' WHEN u.direction = 'inout' THEN 'both'
    WHEN u.is_view THEN 'view' ELSE 'producer' END AS part,
  u.written_by, ((u.buffer_id << 24) | u.layout_id) AS tensor_id, l.dtype, l.shape
FROM (
  SELECT run, rank, call_id, position, name, direction, buffer_id, layout_id, signature_id, is_view,
    max(CASE WHEN direction = 'in' OR is_view THEN NULL ELSE call_id END) OVER (
      PARTITION BY run, rank, buffer_id ORDER BY call_id RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
      AS written_by
  FROM (
    SELECT u.run, u.rank, u.call_id, u.position, u.name, u.direction, u.buffer_id, u.layout_id, u.signature_id,
      u.direction = 'out' AND v.op_id IS NOT NULL AS is_view
    FROM tensor_use u
    JOIN signature s ON s.run = u.run AND s.rank = u.rank AND s.signature_id = u.signature_id
    LEFT JOIN view_op v ON v.run = s.run AND v.rank = s.rank AND v.op_id = s.op_id
    WHERE u.leaf = 1 AND u.buffer_id > 0) uses) u
JOIN signature s ON s.run = u.run AND s.rank = u.rank AND s.signature_id = u.signature_id
JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
LEFT JOIN layout l ON l.run = u.run AND l.rank = u.rank AND l.layout_id = u.layout_id
