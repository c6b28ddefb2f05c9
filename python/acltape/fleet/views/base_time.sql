-- The moment from which the tables of a trace count their times.
SELECT run, rank, CAST(value AS BIGINT) AS base_ns FROM meta WHERE key = 'base_ns'
