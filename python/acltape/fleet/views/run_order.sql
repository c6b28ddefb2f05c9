-- The runs of each role in the order in which they were recorded, each with the run before it.
SELECT role, run, lag(run) OVER (PARTITION BY role ORDER BY recorded, run) AS before
FROM (
  SELECT coalesce(label, '') AS role, run, coalesce(min(recorded), '') AS recorded
  FROM part GROUP BY coalesce(label, ''), run) runs
