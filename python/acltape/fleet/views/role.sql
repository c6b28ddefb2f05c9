-- The parts with the role that the user gave them (`label`), and the trace of each.
SELECT run, rank, coalesce(label, '') AS role, trace FROM part
