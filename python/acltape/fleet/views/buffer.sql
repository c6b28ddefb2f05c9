-- One row for each allocation, as the view `buffer` of a trace.
SELECT b.run, b.rank, b.buffer_id, (coalesce(b.flags, 0) >> 8) AS device, b.address, b.bytes, b.alloc_call,
  b.free_call, r.pool, r.role, (coalesce(b.flags, 0) & 1) AS is_foreign,
  CASE (b.flags & 6) WHEN 2 THEN 'block' WHEN 4 THEN 'tensor' END AS layer, b.block,
  b.alloc_ns + t.base_ns AS alloc_ns, b.alloc_ns + b.life_ns + t.base_ns AS free_ns
FROM buffer_row b
LEFT JOIN buffer_role r ON r.run = b.run AND r.rank = b.rank AND r.buffer_id = b.buffer_id
LEFT JOIN base_time t ON t.run = b.run AND t.rank = b.rank
