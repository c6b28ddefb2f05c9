-- question: Where do ranks wait, by collective and by link?
-- answer: In run {run}, {link} moves {bandwidth:.3f} GB/s in {op}, {slower:.1f} times less than the other links do; its slowest transfer is call {call_id} of rank {rank}, in step {step}.
-- none: No link is slower than the others.
-- needs: (SELECT run FROM meeting UNION ALL SELECT run FROM message) met: several ranks of one run have the collectives or messages of a communicator (record with the ACL level)
-- next: acltape query {trace} "SELECT * FROM collective WHERE call_id = {call_id}"
WITH links AS (
  SELECT run, communicator AS link, op, count(DISTINCT number) AS meetings, sum(waited_ns) AS waited_ns,
    median(bytes / nullif(CAST(transfer_ns AS DOUBLE), 0)) AS bandwidth, max_by(rank, transfer_ns) AS rank,
    max_by(call_id, transfer_ns) AS call_id
  FROM meeting GROUP BY run, communicator, op
  UNION ALL
  SELECT run, 'the link from rank ' || CAST(rank AS STRING) || ' to rank ' || CAST(receiving_rank AS STRING),
    'messages', count(*), CAST(NULL AS BIGINT), median(bytes / nullif(CAST(transfer_ns AS DOUBLE), 0)),
    max_by(rank, transfer_ns), max_by(call_id, transfer_ns)
  FROM message WHERE bytes > 0 GROUP BY run, rank, receiving_rank),
usual AS (
  SELECT run, op, count(*) AS links, median(bandwidth) AS bandwidth FROM links WHERE bandwidth > 0 GROUP BY run, op)
SELECT l.run, l.link, l.op, l.meetings, l.waited_ns / 1e6 AS waited_ms, l.bandwidth, u.bandwidth / l.bandwidth AS slower,
  l.rank, c.step, l.call_id, n.line, r.trace,
  CASE WHEN u.links > 2 AND l.meetings > 2 AND l.bandwidth < 0.5 * u.bandwidth THEN 1 ELSE 0 END AS finding
FROM links l
LEFT JOIN usual u ON u.run = l.run AND u.op = l.op
LEFT JOIN call_row c ON c.run = l.run AND c.rank = l.rank AND c.call_id = l.call_id
LEFT JOIN call_line n ON n.run = l.run AND n.rank = l.rank AND n.call_id = l.call_id
LEFT JOIN role r ON r.run = l.run AND r.rank = l.rank
ORDER BY slower DESC, waited_ms DESC, l.run, l.link, l.op
