"""A cache of which six rows of eight are filled, and a mean over all eight. With --zeros it begins as zeros,
with --masked the mean leaves the last two rows out."""
import sys

import torch
import torch_npu  # noqa: F401

make = torch.zeros if "--zeros" in sys.argv else torch.empty
cache = make(8, 4, device="npu")
for row in range(6):
    cache[row].copy_(torch.full((4,), float(row + 1), device="npu"))
if "--masked" in sys.argv:
    filled = torch.arange(8, device="npu").view(8, 1) < 6
    cache = torch.where(filled, cache, torch.zeros(8, 4, device="npu"))
mean = (cache * 0.125).sum()
print("mean", float(mean))
