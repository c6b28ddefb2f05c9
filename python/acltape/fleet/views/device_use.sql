-- The use of each device and of each of its streams, from its first work to its last, as the view `device_use` of a
-- trace.
SELECT run, rank, process_id, device, stream_id, count(*) AS tasks, CAST(sum(busy_ns) AS BIGINT) AS busy_ns,
  CAST(sum(idle_ns) AS BIGINT) AS idle_ns,
  round(100 * CAST(sum(idle_ns) AS DOUBLE) / nullif(CAST(sum(busy_ns) + sum(idle_ns) AS DOUBLE), 0), 2)
    AS idle_percent,
  max(idle_ns) AS longest_idle_ns, CAST(sum(launch_ns) AS BIGINT) AS launch_ns, min(begin_ns) AS begin_ns,
  max(end_ns) AS end_ns
FROM (
  SELECT w.run, w.rank, w.process_id, w.device, w.stream_id, w.begin_ns, w.end_ns,
    greatest(0, w.end_ns - greatest(w.begin_ns, coalesce(w.idle_from, w.begin_ns))) AS busy_ns,
    greatest(0, w.begin_ns - coalesce(w.idle_from, w.begin_ns)) AS idle_ns,
    CASE WHEN c.call_id IS NOT NULL THEN
      greatest(0, least(w.end_ns, c.begin_ns + c.duration_ns + b.base_ns) - w.begin_ns) END AS launch_ns
  FROM device_work w
  LEFT JOIN call_row c ON c.run = w.run AND c.rank = w.rank AND c.call_id = w.call_id
  LEFT JOIN base_time b ON b.run = w.run AND b.rank = w.rank) works
GROUP BY run, rank, process_id, device, stream_id
