-- Calls that cannot be inside a captured graph, as the view `capture_breaks` of a trace.
WITH ending AS (
  SELECT s.run, s.rank, s.signature_id, o.op, r.code, r.reason
  FROM barrier_op r
  JOIN op_name o ON o.run = r.run AND o.rank = r.rank AND o.op_id = r.op_id
  JOIN signature s ON s.run = r.run AND s.rank = r.rank AND s.op_id = r.op_id
  UNION ALL
  SELECT s.run, s.rank, s.signature_id, o.op, 107027,
    'data-dependent shape: an index is a mask, whose nonzero elements are counted'
  FROM op_name o
  JOIN signature s ON s.run = o.run AND s.rank = o.rank AND s.op_id = o.op_id
  JOIN (
    SELECT DISTINCT e.run, e.rank, e.signature_id
    FROM list_element e
    JOIN layout l ON l.run = e.run AND l.rank = e.rank AND l.layout_id = e.layout_id
    WHERE l.dtype IN ('bool', 'uint8')) m
    ON m.run = s.run AND m.rank = s.rank AND m.signature_id = s.signature_id
  WHERE o.name IN ('aten::index', 'aten::index_put', 'aten::index_put_', 'aten::_index_put_impl_')),
copied AS (
  SELECT c.run, c.rank, c.call_id, c.step, o.op, c.duration_ns, a.direction,
    TRY_CAST(split_part(translate(c.buffers, '[] ', ''), ',', CAST(a.slot + 1 AS INT)) AS BIGINT) AS buffer_id
  FROM op_name o
  JOIN signature s ON s.run = o.run AND s.rank = o.rank AND s.op_id = o.op_id
  JOIN signature_argument a ON a.run = s.run AND a.rank = s.rank AND a.signature_id = s.signature_id
    AND a.kind = 'tensor'
  JOIN call_row c ON c.run = s.run AND c.rank = s.rank AND c.signature_id = s.signature_id
  WHERE o.name IN ('aten::copy_', 'aten::_to_copy') AND (c.bits & 4) <> 0)
SELECT c.run, c.rank, c.call_id, c.step, k.op, k.code, k.reason, c.duration_ns
FROM call_row c
JOIN ending k ON k.run = c.run AND k.rank = c.rank AND k.signature_id = c.signature_id
LEFT JOIN on_a_device d ON d.run = c.run AND d.rank = c.rank
WHERE ((c.bits & 4) <> 0 OR k.op LIKE 'acl%') AND ((c.bits >> 3) <> 1 OR d.run IS NULL)
UNION ALL
SELECT w.run, w.rank, w.call_id, w.step, w.op, 107030,
  'copy between device ' || CAST((coalesce(s.flags, 0) >> 8) AS STRING) || ' and device '
    || CAST((coalesce(d.flags, 0) >> 8) AS STRING), w.duration_ns
FROM copied w
JOIN copied r ON r.run = w.run AND r.rank = w.rank AND r.call_id = w.call_id AND r.direction = 'in'
JOIN buffer_row d ON d.run = w.run AND d.rank = w.rank AND d.buffer_id = w.buffer_id
JOIN buffer_row s ON s.run = r.run AND s.rank = r.rank AND s.buffer_id = r.buffer_id
WHERE w.direction <> 'in' AND (coalesce(d.flags, 0) >> 8) <> (coalesce(s.flags, 0) >> 8)
