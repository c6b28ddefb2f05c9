"""A training of two ranks over torch_npu: npu_ranks.py [--parting].

Each rank is a process; DistributedDataParallel sums the gradients of both. With --parting rank 1 changes
a weight alone in the fourth step, so that the replicas are no longer equal. Prints the last loss of each rank.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401
from torch import nn

RANKS, STEPS = 2, 8


def train(rank, store, parting):
    torch.manual_seed(0)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=RANKS, init_method=f"file://{store}")
    layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).npu()
    model = nn.parallel.DistributedDataParallel(layers, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(rank)
    for step in range(STEPS):
        inputs, wanted = torch.randn(8, 16, generator=data), torch.randn(8, 4, generator=data)
        loss = ((model(inputs.npu()) - wanted.npu()) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if parting and rank == 1 and step == 3:
            with torch.no_grad():
                layers[0].weight.mul_(1.001)
    print(f"rank {rank}: loss {loss.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (os.path.join(folder, "store"), "--parting" in sys.argv), nprocs=RANKS)
