-- Where each call comes from in the source of the program, as the view `call_location` of a trace: backward work has
-- the line of the forward leaf whose gradient the nearest node around it computes.
WITH RECURSIVE inside(run, rank, call_id, forward_call, depth) AS (
  SELECT c.run, c.rank, c.call_id, x.forward_call, 0
  FROM call_extra x
  JOIN call_row c ON c.run = x.run AND c.rank = x.rank AND c.parent_id = x.call_id
  WHERE x.forward_call IS NOT NULL
  UNION ALL
  SELECT c.run, c.rank, c.call_id, i.forward_call, i.depth + 1
  FROM inside i
  JOIN call_row c ON c.run = i.run AND c.rank = i.rank AND c.parent_id = i.call_id AND c.call_id > i.call_id
  LEFT JOIN call_extra x ON x.run = i.run AND x.rank = i.rank AND x.call_id = i.call_id
  WHERE x.forward_call IS NULL AND i.depth < 256)
SELECT c.run, c.rank, c.call_id, k.file, k.line, k.function,
  CASE WHEN f.stack_id IS NULL THEN 'own' ELSE 'forward' END AS via
FROM call_row c
LEFT JOIN inside i ON i.run = c.run AND i.rank = c.rank AND i.call_id = c.call_id
LEFT JOIN call_row f ON f.run = i.run AND f.rank = i.rank AND f.call_id = i.forward_call
JOIN stack_location k ON k.run = c.run AND k.rank = c.rank AND k.stack_id = coalesce(f.stack_id, c.stack_id)
