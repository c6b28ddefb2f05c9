-- question: Which ranks call collectives in another order?
-- answer: In run {run} the {number}. collective of {communicator} is {op} of {elements} on rank {rank} and {others_op} of {others_elements} on the {others} others (call {call_id}, step {step}).
-- none: All ranks call the collectives of each communicator in one order.
-- needs: (SELECT run FROM communicator GROUP BY run, name HAVING count(DISTINCT rank) > 1) met: several ranks of one run have a communicator (record with the ACL level)
-- next: acltape query {trace} "SELECT * FROM collective WHERE call_id = {call_id}"
WITH said AS (
  SELECT run, rank, communicator, number, call_id, step, op, count AS elements,
    op || ' ' || coalesce(CAST(count AS STRING), '') || ' ' || coalesce(dtype, '') || ' ' || coalesce(reduction, '')
      || ' ' || coalesce(CAST(root AS STRING), '') AS what
  FROM collective
  WHERE model_id IS NULL AND peer IS NULL AND communicator IS NOT NULL
    AND op IN ('HcclAllReduce', 'HcclAllGather', 'HcclReduceScatter', 'HcclBroadcast', 'HcclReduce', 'HcclScatter',
      'HcclAlltoAll', 'HcclBarrier')),
counted AS (
  SELECT run, communicator, number, what, count(*) AS ranks, min(rank) AS rank, min(op) AS op,
    min(elements) AS elements
  FROM said GROUP BY run, communicator, number, what),
usual AS (
  SELECT run, communicator, number, count(*) AS kinds, sum(ranks) AS ranks,
    max_by(what, ranks * 1000000 - rank) AS what, max(ranks) AS others,
    max_by(op, ranks * 1000000 - rank) AS op, max_by(elements, ranks * 1000000 - rank) AS elements
  FROM counted GROUP BY run, communicator, number),
differing AS (
  SELECT s.run, s.rank, s.communicator, min(s.number) AS number
  FROM said s
  JOIN usual u ON u.run = s.run AND u.communicator = s.communicator AND u.number = s.number
  WHERE u.kinds > 1 AND s.what <> u.what
  GROUP BY s.run, s.rank, s.communicator)
SELECT s.run, s.rank, s.communicator, s.number, s.op, s.elements, u.op AS others_op, u.elements AS others_elements,
  u.others, s.step, s.call_id, n.line, r.trace, 1 AS finding
FROM differing d
JOIN said s ON s.run = d.run AND s.rank = d.rank AND s.communicator = d.communicator AND s.number = d.number
JOIN usual u ON u.run = s.run AND u.communicator = s.communicator AND u.number = s.number
LEFT JOIN call_line n ON n.run = s.run AND n.rank = s.rank AND n.call_id = s.call_id
LEFT JOIN role r ON r.run = s.run AND r.rank = s.rank
ORDER BY s.run, s.communicator, s.number, s.rank
