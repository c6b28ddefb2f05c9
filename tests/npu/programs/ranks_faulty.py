"""Training of two ranks with one fault: ranks_faulty.py KIND [right]. With "right" each rank does what is right.

A comment "finds" marks the line that a finding names.
"""
import os
import sys
import time

import ranks
import torch
import torch.distributed as dist
from torch import nn

STEPS = 10
KINDS = ("replica", "late", "died", "shorter", "order", "size", "no_wait", "graph")


def reduced(module, count, waits):
    """Sums the gradients of the ranks, as DistributedDataParallel does in its hooks."""
    works = [dist.all_reduce(p.grad, async_op=True) for p in module.parameters()]
    if waits:
        for work in works:
            work.wait()
    for parameter in module.parameters():
        parameter.grad /= count


def train(rank, count, kind, right):
    wrong = rank == 1 and not right
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).npu()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    seen = torch.zeros(4).npu()
    for step in range(STEPS):
        if kind == "shorter" and wrong and step == STEPS - 1:
            break
        if kind == "died" and wrong and step == 4:
            torch.npu.synchronize()
            os._exit(3)
        inputs, wanted = torch.randn(8, 16, generator=generator).npu(), torch.randn(8, 4, generator=generator).npu()
        if kind == "late" and wrong:
            time.sleep(0.05)
        loss = ((module(inputs) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        if kind == "no_wait" and rank == 0 and step >= 3:
            torch.npu.synchronize()
            time.sleep(0.2)
        reduced(module, count, waits=not (kind == "no_wait" and wrong and step >= 3))
        optimizer.step()  # finds: no_wait
        if kind == "replica" and wrong and step == 3:
            with torch.no_grad():
                module[0].weight.add_(0.001)
        norms, means = torch.ones(4).npu() * step, torch.ones(4).npu() * rank
        if kind == "order" and wrong:
            dist.broadcast(means, 0)  # finds: order
            dist.all_reduce(norms)
        else:
            dist.all_reduce(norms)  # finds: order
            dist.broadcast(means, 0)
        seen += norms[:4]
        if kind == "size":
            dist.all_reduce(torch.ones(3 if wrong else 4).npu())  # finds: size
    if kind == "graph":
        static = torch.ones(8).npu()
        dist.all_reduce(static)
        torch.npu.synchronize()
        if wrong:
            dist.all_reduce(static)  # finds: graph
        else:
            graph = torch.npu.NPUGraph()
            with torch.npu.graph(graph):
                dist.all_reduce(static)  # finds: graph
            graph.replay()
    torch.npu.synchronize()


def begin(*arguments):
    """A rank that fails ends the others, so it waits until what they called is recorded."""
    try:
        train(*arguments)
    except RuntimeError:
        time.sleep(1)
        raise


if __name__ == "__main__":
    ranks.run(begin, 2, ranks.argument(1, "replica"), "right" in sys.argv)
