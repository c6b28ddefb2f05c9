-- One row for each tensor that an argument is or holds, as the view `tensor_use` of a trace.
SELECT c.run, c.rank, c.call_id, a.position, a.name, a.direction, a.element,
  CASE WHEN a.slot >= 0 THEN
    coalesce(TRY_CAST(split_part(translate(c.buffers, '[] ', ''), ',', CAST(a.slot + 1 AS INT)) AS BIGINT), 0)
  ELSE 0 END AS buffer_id,
  a.layout_id, c.signature_id, ((c.bits >> 2) & 1) AS leaf
FROM call_row c
JOIN (
  SELECT run, rank, signature_id, position, name, direction, CAST(0 AS BIGINT) AS element, slot, layout_id
  FROM signature_argument WHERE kind = 'tensor' AND layout_id IS NOT NULL
  UNION ALL
  SELECT run, rank, signature_id, position, name, direction, element, slot, layout_id
  FROM list_element WHERE layout_id > 0) a
  ON a.run = c.run AND a.rank = c.rank AND a.signature_id = c.signature_id
