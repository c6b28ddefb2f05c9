-- The parts in which a leaf of PyTorch ran on a device; 16 is the least value of `bits` that says so.
SELECT DISTINCT run, rank FROM call_row WHERE bits >= 16
