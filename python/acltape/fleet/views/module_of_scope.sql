-- The path of the innermost module around each scope, and of the scope itself if it is one.
WITH RECURSIVE up(run, rank, origin, scope_id, parent_id, kind, path) AS (
  SELECT run, rank, scope_id, scope_id, parent_id, kind, path FROM scope
  UNION ALL
  SELECT u.run, u.rank, u.origin, s.scope_id, s.parent_id, s.kind, s.path
  FROM up u
  JOIN scope s ON s.run = u.run AND s.rank = u.rank AND s.scope_id = u.parent_id
  WHERE u.kind <> 'module' AND s.scope_id < u.scope_id)
SELECT run, rank, origin AS scope_id, path AS module FROM up WHERE kind = 'module'
