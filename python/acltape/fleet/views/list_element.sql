-- One row for each tensor in a list of tensors that calls of a signature take: its place in the list, its slot (-1: it
-- is undefined) and its layout. A list is pairs of slot and layout, "[[0,5],[1,6]]".
SELECT run, rank, signature_id, position, name, direction, element,
  TRY_CAST(split_part(pairs, ',', CAST(2 * element + 1 AS INT)) AS BIGINT) AS slot,
  TRY_CAST(split_part(pairs, ',', CAST(2 * element + 2 AS INT)) AS BIGINT) AS layout_id
FROM (
  SELECT run, rank, signature_id, position, name, direction, pairs,
    explode(sequence(0, CAST(floor((length(pairs) - length(replace(pairs, ',', ''))) / 2) AS BIGINT))) AS element
  FROM (SELECT run, rank, signature_id, position, name, direction, translate(list, '[] ', '') AS pairs
    FROM signature_argument WHERE kind = 'tensor_list') texts
  WHERE pairs LIKE '%,%') elements
