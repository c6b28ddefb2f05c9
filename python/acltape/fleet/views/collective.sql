-- The collectives and messages of HCCL, as the view `collective` of a trace. `communicator_rank` is the rank in the
-- communicator, which a trace calls `rank`.
WITH argument_of AS (
  SELECT a.run, a.rank, a.signature_id, o.name AS function, a.name, a.kind, a.integer, a.list,
    TRY_CAST(split_part(translate(l.shape, '[] ', ''), ',', 1) AS BIGINT) AS bytes
  FROM op o
  JOIN signature s ON s.run = o.run AND s.rank = o.rank AND s.op_id = o.op_id
  JOIN signature_argument a ON a.run = s.run AND a.rank = s.rank AND a.signature_id = s.signature_id
  LEFT JOIN layout l ON l.run = a.run AND l.rank = a.rank AND l.layout_id = a.layout_id
  WHERE o.dialect = 'hccl' AND o.name <> 'HcclGetCommName'),
said AS (
  SELECT run, rank, signature_id,
    max(CASE WHEN name = 'comm' THEN integer END) AS communicator_id,
    max(CASE WHEN name IN ('count', 'sendCount', 'recvCount') THEN integer END) AS elements,
    max(CASE WHEN name IN ('dataType', 'sendType') THEN integer END) AS dtype,
    max(CASE WHEN name = 'op' THEN integer END) AS reduction,
    max(CASE WHEN name = 'root' THEN integer END) AS root,
    max(CASE WHEN name = 'sendCountMatrix' THEN list END) AS matrix,
    max(CASE WHEN name IN ('destRank', 'srcRank') THEN integer END) AS peer,
    max(CASE WHEN name IN ('sendBuf', 'buf') THEN bytes END) AS sent_bytes,
    max(CASE WHEN name IN ('recvBuf', 'buf') THEN bytes END) AS received_bytes
  FROM argument_of GROUP BY run, rank, signature_id),
batch AS (
  SELECT run, rank, signature_id, item,
    TRY_CAST(split_part(numbers, ',', CAST(4 * item + 1 AS INT)) AS BIGINT) AS receives,
    TRY_CAST(split_part(numbers, ',', CAST(4 * item + 2 AS INT)) AS BIGINT) AS elements,
    TRY_CAST(split_part(numbers, ',', CAST(4 * item + 3 AS INT)) AS BIGINT) AS dtype,
    TRY_CAST(split_part(numbers, ',', CAST(4 * item + 4 AS INT)) AS BIGINT) AS peer
  FROM (
    SELECT run, rank, signature_id, numbers,
      explode(sequence(0, CAST(floor((length(numbers) - length(replace(numbers, ',', ''))) / 4) AS BIGINT))) AS item
    FROM (
      SELECT run, rank, signature_id, translate(list, '[] ', '') AS numbers FROM argument_of
      WHERE function = 'HcclBatchSendRecv' AND name = 'sendRecvInfo' AND kind = 'int_list') texts
    WHERE length(numbers) > 0) items),
memory AS (
  SELECT e.run, e.rank, e.signature_id, e.element AS item,
    TRY_CAST(split_part(translate(l.shape, '[] ', ''), ',', 1) AS BIGINT) AS bytes
  FROM list_element e
  JOIN signature s ON s.run = e.run AND s.rank = e.rank AND s.signature_id = e.signature_id
  JOIN op o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id AND o.name = 'HcclBatchSendRecv'
  JOIN layout l ON l.run = e.run AND l.rank = e.rank AND l.layout_id = e.layout_id),
called AS (
  SELECT c.run, c.rank, c.call_id, c.signature_id, c.parent_id, c.step, c.begin_ns, c.duration_ns
  FROM said d JOIN call_row c ON c.run = d.run AND c.rank = d.rank AND c.signature_id = d.signature_id),
extra AS ( -- An inner join, as engines hold the fewer rows of one, and all of this table by an outer one.
  SELECT x.run, x.rank, x.call_id, x.stream_id, x.model_id, x.status
  FROM called c JOIN call_extra x ON x.run = c.run AND x.rank = c.rank AND x.call_id = c.call_id)
SELECT c.run, c.rank, c.call_id, m.process_id, m.name AS communicator, m.communicator_rank, m.ranks,
  d.communicator_id,
  row_number() OVER (PARTITION BY c.run, c.rank, d.communicator_id, x.model_id,
    d.peer IS NULL AND o.name <> 'HcclBatchSendRecv' ORDER BY c.call_id, p.item) AS number,
  o.name AS op, coalesce(p.elements, d.elements) AS count,
  CASE coalesce(p.dtype, d.dtype) WHEN 0 THEN 'int8' WHEN 1 THEN 'int16' WHEN 2 THEN 'int32' WHEN 3 THEN 'fp16'
    WHEN 4 THEN 'fp32' WHEN 5 THEN 'int64' WHEN 6 THEN 'uint64' WHEN 7 THEN 'uint8' WHEN 8 THEN 'uint16'
    WHEN 9 THEN 'uint32' WHEN 10 THEN 'fp64' WHEN 11 THEN 'bfp16' WHEN 12 THEN 'int128' WHEN 14 THEN 'hif8'
    WHEN 15 THEN 'fp8e4m3' WHEN 16 THEN 'fp8e5m2' WHEN 17 THEN 'fp8e8m0' END AS dtype,
  CASE d.reduction WHEN 0 THEN 'sum' WHEN 1 THEN 'prod' WHEN 2 THEN 'max' WHEN 3 THEN 'min' END AS reduction,
  d.root, d.matrix,
  CASE WHEN o.name = 'HcclSend' THEN 'send' WHEN o.name = 'HcclRecv' THEN 'recv' WHEN p.receives = 0 THEN 'send'
    WHEN p.item IS NOT NULL THEN 'recv' END AS message,
  coalesce(p.peer, d.peer) AS peer, p.item,
  CASE WHEN p.receives = 0 THEN w.bytes ELSE d.sent_bytes END AS sent_bytes,
  CASE WHEN p.receives <> 0 THEN w.bytes ELSE d.received_bytes END AS received_bytes, x.stream_id, x.model_id,
  coalesce(x.status, 0) AS status, c.parent_id, c.step, c.begin_ns + b.base_ns AS begin_ns,
  c.begin_ns + c.duration_ns + b.base_ns AS end_ns
FROM said d
JOIN called c ON c.run = d.run AND c.rank = d.rank AND c.signature_id = d.signature_id
JOIN signature s ON s.run = c.run AND s.rank = c.rank AND s.signature_id = c.signature_id
JOIN op o ON o.run = s.run AND o.rank = s.rank AND o.op_id = s.op_id
LEFT JOIN batch p ON p.run = d.run AND p.rank = d.rank AND p.signature_id = d.signature_id
LEFT JOIN memory w ON w.run = p.run AND w.rank = p.rank AND w.signature_id = p.signature_id AND w.item = p.item
LEFT JOIN communicator m ON m.run = d.run AND m.rank = d.rank AND m.communicator_id = d.communicator_id
LEFT JOIN extra x ON x.run = c.run AND x.rank = c.rank AND x.call_id = c.call_id
LEFT JOIN base_time b ON b.run = c.run AND b.rank = c.rank
