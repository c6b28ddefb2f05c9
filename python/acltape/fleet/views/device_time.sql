-- The device's time for each call, and for each call of PyTorch whose kernel launched the work, as the view
-- `device_time` of a trace.
WITH span AS (
  SELECT d.run, d.rank, d.call_id, c.parent_id, d.begin_ns, d.end_ns,
    CASE WHEN d.begin_ns >= c.begin_ns + c.duration_ns + b.base_ns THEN 1
      WHEN d.begin_ns < c.begin_ns + c.duration_ns + b.base_ns THEN 0 END AS exact
  FROM device_span d
  JOIN call_row c ON c.run = d.run AND c.rank = d.rank AND c.call_id = d.call_id
  LEFT JOIN base_time b ON b.run = d.run AND b.rank = d.rank)
SELECT run, rank, call_id, count(*) AS tasks, CAST(sum(end_ns - begin_ns) AS BIGINT) AS device_ns,
  min(begin_ns) AS begin_ns, max(end_ns) AS end_ns, CAST(min(exact) AS BIGINT) AS exact
FROM span GROUP BY run, rank, call_id
UNION ALL
SELECT a.run, a.rank, a.call_id, count(*), CAST(sum(s.end_ns - s.begin_ns) AS BIGINT), min(s.begin_ns), max(s.end_ns),
  CAST(min(s.exact) AS BIGINT)
FROM span s
JOIN call_row a ON a.run = s.run AND a.rank = s.rank AND a.call_id = s.parent_id
JOIN signature n ON n.run = a.run AND n.rank = a.rank AND n.signature_id = a.signature_id
JOIN op o ON o.run = n.run AND o.rank = n.rank AND o.op_id = n.op_id AND o.dialect = 'aten'
GROUP BY a.run, a.rank, a.call_id
