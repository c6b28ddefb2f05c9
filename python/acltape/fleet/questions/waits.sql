-- question: Where do ranks wait, by collective and by link?
-- answer: In run {run}, {link} moves {bandwidth:.3f} GB/s in {op}, {slower:.1f} times less than the other links do; its slowest transfer is call {call_id} of rank {rank}, in step {step}.
-- none: No link is slower than the others.
-- needs: (SELECT run FROM meeting UNION ALL SELECT run FROM message) met: several ranks of one run have the collectives or messages of a communicator (record with the ACL level)
-- next: acltape query {trace} "SELECT * FROM collective WHERE call_id = {call_id}"
WITH transfers AS (
  SELECT run, communicator AS link, op, number, waited_ns, bytes, transfer_ns, rank, call_id FROM meeting
  UNION ALL
  SELECT run, 'the link from rank ' || CAST(rank AS STRING) || ' to rank ' || CAST(receiving_rank AS STRING),
    'messages', call_id, CAST(NULL AS BIGINT), bytes, transfer_ns, rank, call_id
  FROM message WHERE bytes > 0),
ordered AS (
  SELECT t.*, row_number() OVER (PARTITION BY run, link, op ORDER BY transfer_ns DESC, waited_ns, call_id, rank) AS place
  FROM transfers t),
links AS (
  SELECT run, link, op, count(DISTINCT number) AS meetings, sum(waited_ns) AS waited_ns,
    median(bytes / nullif(CAST(transfer_ns AS DOUBLE), 0)) AS bandwidth, max(CASE WHEN place = 1 THEN rank END) AS rank,
    max(CASE WHEN place = 1 THEN call_id END) AS call_id
  FROM ordered GROUP BY run, link, op),
usual AS (
  SELECT run, op, count(*) AS links, median(bandwidth) AS bandwidth FROM links WHERE bandwidth > 0 GROUP BY run, op)
SELECT l.run, l.link, l.op, l.meetings, l.waited_ns / 1e6 AS waited_ms, l.bandwidth,
  u.bandwidth / nullif(l.bandwidth, 0) AS slower, l.rank, c.step, l.call_id, n.line, r.trace,
  CASE WHEN u.links > 2 AND l.meetings > 2 AND l.bandwidth < 0.5 * u.bandwidth THEN 1 ELSE 0 END AS finding
FROM links l
LEFT JOIN usual u ON u.run = l.run AND u.op = l.op
LEFT JOIN call_row c ON c.run = l.run AND c.rank = l.rank AND c.call_id = l.call_id
LEFT JOIN call_line n ON n.run = l.run AND n.rank = l.rank AND n.call_id = l.call_id
LEFT JOIN role r ON r.run = l.run AND r.rank = l.rank
ORDER BY slower DESC, waited_ms DESC, l.run, l.link, l.op
