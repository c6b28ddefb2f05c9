-- One row for each argument and return of each call, as the view `argument` of a trace.
SELECT c.run, c.rank, c.call_id, a.position, a.name, a.direction, a.kind,
  ((coalesce(TRY_CAST(split_part(translate(c.buffers, '[] ', ''), ',', CAST(a.slot + 1 AS INT)) AS BIGINT), 0) << 24)
    | a.layout_id) AS tensor_id,
  CASE WHEN a.kind = 'scalar' AND a.text LIKE '%float%' THEN NULL ELSE a.integer END AS integer, a.real, a.text,
  CASE WHEN a.kind = 'tensor_list' THEN '[' || coalesce(e.tensors, '') || ']' ELSE a.list END AS list,
  TRY_CAST(split_part(translate(c.buffers, '[] ', ''), ',', CAST(a.slot + 1 AS INT)) AS BIGINT) AS buffer_id,
  a.layout_id, l.dtype, l.shape
FROM call_row c
JOIN signature_argument a ON a.run = c.run AND a.rank = c.rank AND a.signature_id = c.signature_id
LEFT JOIN layout l ON l.run = a.run AND l.rank = a.rank AND l.layout_id = a.layout_id
LEFT JOIN (
  SELECT run, rank, call_id, position, listagg(tensor, ',') WITHIN GROUP (ORDER BY element) AS tensors
  FROM (
    SELECT c.run, c.rank, c.call_id, e.position, e.element,
      CAST(((CASE WHEN e.slot < 0 THEN 0 ELSE
        coalesce(TRY_CAST(split_part(translate(c.buffers, '[] ', ''), ',', CAST(e.slot + 1 AS INT)) AS BIGINT), 0)
      END << 24) | e.layout_id) AS STRING) AS tensor
    FROM call_row c
    JOIN list_element e ON e.run = c.run AND e.rank = c.rank AND e.signature_id = c.signature_id) tensors
  GROUP BY run, rank, call_id, position) e
  ON e.run = c.run AND e.rank = c.rank AND e.call_id = c.call_id AND e.position = a.position
