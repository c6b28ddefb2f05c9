-- Each pair of buffer and layout that a call used, once, as the view `tensor` of a trace.
SELECT u.run, u.rank, ((u.buffer_id << 24) | u.layout_id) AS tensor_id, u.buffer_id, l.byte_offset, l.dtype, l.shape,
  l.strides, l.format, l.flags, l.layout_id, l.memory
FROM (SELECT DISTINCT run, rank, buffer_id, layout_id FROM tensor_use) u
JOIN layout l ON l.run = u.run AND l.rank = u.rank AND l.layout_id = u.layout_id
