"""Training of two ranks, right or with one fault on rank 1: ranks_parted.py [FAULT]. The recordings of a right run and
of a faulty one part first at the fault."""
import time

import ranks
import torch
import torch.distributed as dist

FAULTS = ("none", "order", "stale", "wait", "overflow")
STEPS, FAULTY_STEP, WIDTH = 6, 3, 64


def shards(rank, step, count):
    """What each rank adds up from all ranks, in three parts."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return [torch.randn(WIDTH, generator=generator).npu() for _ in range(3)]


def train(rank, count):
    fault = ranks.argument(1, "none")
    torch.manual_seed(0)
    weight = torch.randn(WIDTH, WIDTH).npu() / WIDTH
    kept = torch.zeros(WIDTH).npu()
    for step in range(STEPS):
        faulty = rank == 1 and step == FAULTY_STEP
        first, second, third = shards(rank, step, count)
        if fault == "order" and faulty:
            total = first + (second + third)
        else:
            total = (first + second) + third
        shard = weight[rank * (WIDTH // count):(rank + 1) * (WIDTH // count)].clone()
        if fault == "stale" and faulty:
            shard = kept.repeat(WIDTH // count, 1)
        product = shard @ total
        if fault == "overflow" and faulty:
            product = (product.half() * 30000.0 * 30000.0).float()
        gathered = torch.empty(WIDTH).npu()
        if fault == "wait" and rank == 0 and step == FAULTY_STEP:
            torch.npu.synchronize()
            time.sleep(0.3)  # so that rank 1 is early for sure
        work = dist.all_gather_into_tensor(gathered, product, async_op=True)
        if fault == "wait" and faulty:
            early = gathered * 0.5
            work.wait()
        else:
            work.wait()
            early = gathered * 0.5
        dist.all_reduce(early)
        weight = weight + torch.outer(early, total).sum(0).mul(1e-3)
        kept = early
    torch.npu.synchronize()


if __name__ == "__main__":
    ranks.run(train, 2)
