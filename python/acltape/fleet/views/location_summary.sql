-- The lines of the program by the time of their leaves, as the view `location_summary` of a trace.
SELECT l.run, l.rank, l.file, l.line, l.function, count(*) AS leaves,
  CAST(sum(c.duration_ns) AS BIGINT) AS total_ns,
  CAST(sum(CASE WHEN (c.bits & 3) = 0 THEN c.duration_ns ELSE 0 END) AS BIGINT) AS forward_ns,
  CAST(sum(CASE WHEN (c.bits & 3) = 1 THEN c.duration_ns ELSE 0 END) AS BIGINT) AS backward_ns,
  CAST(sum(CASE WHEN (c.bits & 3) = 2 THEN c.duration_ns ELSE 0 END) AS BIGINT) AS optimizer_ns
FROM call_row c
JOIN call_location l ON l.run = c.run AND l.rank = c.rank AND l.call_id = c.call_id
WHERE (c.bits & 4) <> 0
GROUP BY l.run, l.rank, l.file, l.line, l.function
