-- The full names of operators, "aten::add.Tensor".
SELECT run, rank, op_id, dialect, name,
  CASE WHEN overload IS NULL OR overload = '' THEN name ELSE name || '.' || overload END AS op
FROM op
