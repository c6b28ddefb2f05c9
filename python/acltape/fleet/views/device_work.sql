-- Each piece of work with the end of what ran before it on its stream, and, with stream_id NULL, on its device, as the
-- view `device_work` of a trace.
WITH span AS (
  SELECT d.run, d.rank, s.process_id, coalesce(s.device, 0) AS device, d.stream_id, d.call_id, d.begin_ns, d.end_ns
  FROM device_span d
  LEFT JOIN stream_row s ON s.run = d.run AND s.rank = d.rank AND s.stream_id = d.stream_id)
SELECT run, rank, process_id, device, stream_id, stream_id AS on_stream, call_id, begin_ns, end_ns,
  max(end_ns) OVER (PARTITION BY run, rank, stream_id ORDER BY begin_ns, end_ns, call_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS idle_from
FROM span
UNION ALL
SELECT run, rank, process_id, device, CAST(NULL AS BIGINT), stream_id, call_id, begin_ns, end_ns,
  max(end_ns) OVER (PARTITION BY run, rank, process_id, device ORDER BY begin_ns, end_ns, call_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
FROM span
