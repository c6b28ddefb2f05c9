-- Leaves by operator, as the view `top_ops` of a trace.
SELECT t.run, t.rank, o.op, o.dialect, CAST(sum(t.calls) AS BIGINT) AS calls,
  CAST(sum(t.total_ns) AS BIGINT) AS total_ns,
  CAST(floor(CAST(sum(t.total_ns) AS DOUBLE) / CAST(sum(t.calls) AS DOUBLE)) AS BIGINT) AS mean_ns,
  min(t.min_ns) AS min_ns, max(t.max_ns) AS max_ns,
  round(100 * CAST(sum(t.total_ns) AS DOUBLE)
    / nullif(CAST(sum(sum(t.total_ns)) OVER (PARTITION BY t.run, t.rank) AS DOUBLE), 0), 2) AS percent,
  count(*) AS signatures, CAST(sum(v.device_ns) AS BIGINT) AS device_ns,
  CAST(floor(CAST(sum(v.device_ns) AS DOUBLE) / CAST(sum(v.calls) AS DOUBLE)) AS BIGINT) AS device_mean_ns,
  round(100 * CAST(sum(v.device_ns) AS DOUBLE)
    / nullif(CAST(sum(sum(v.device_ns)) OVER (PARTITION BY t.run, t.rank, o.dialect) AS DOUBLE), 0), 2)
    AS device_percent
FROM signature_sum t
LEFT JOIN (
  SELECT c.run, c.rank, c.signature_id, count(*) AS calls, sum(d.device_ns) AS device_ns
  FROM device_time d JOIN call_row c ON c.run = d.run AND c.rank = d.rank AND c.call_id = d.call_id
  GROUP BY c.run, c.rank, c.signature_id) v
  ON v.run = t.run AND v.rank = t.rank AND v.signature_id = t.signature_id
JOIN signature s ON s.run = t.run AND s.rank = t.rank AND s.signature_id = t.signature_id
JOIN op_name o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
GROUP BY t.run, t.rank, o.op_id, o.op, o.dialect
