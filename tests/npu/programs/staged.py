"""Four batches go to the device through one pinned buffer, which the host fills again before the copy of it ran; or
through a buffer for each.

  staged.py one|four
"""
import sys

import torch
import torch_npu  # noqa: F401

big, target = torch.randn(1024, 1024, device="npu"), torch.zeros(8, device="npu")
stages, sums = [torch.zeros(8).pin_memory() for _ in range(4)], []
for step in range(4):
    busy = big @ big
    stage = stages[step if sys.argv[1] == "four" else 0]
    stage.fill_(float(step))
    target.copy_(stage, non_blocking=True)
    sums.append((target * 1.0).sum())
print([value.item() for value in sums])
