-- The line of the program that made a call, as "train.py:12", where the call has a stack of its own.
SELECT c.run, c.rank, c.call_id, k.file || ':' || CAST(k.line AS STRING) AS line
FROM call_row c
JOIN stack_location k ON k.run = c.run AND k.rank = c.rank AND k.stack_id = c.stack_id
