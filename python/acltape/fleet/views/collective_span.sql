-- The device's time for each call of HCCL, as `device_time` has it, without that of all other calls.
SELECT d.run, d.rank, d.call_id, CAST(sum(d.end_ns - d.begin_ns) AS BIGINT) AS device_ns
FROM device_span d
JOIN (SELECT DISTINCT run, rank, call_id FROM collective) c ON c.run = d.run AND c.rank = d.rank AND c.call_id = d.call_id
GROUP BY d.run, d.rank, d.call_id
