"""The twins of waits_wrong.py: waits that something needs, and work that waits for nothing."""
import time

import torch
import torch_npu  # noqa: F401

torch.manual_seed(0)


def pinned():
    weight = torch.randn(64, 64, device="npu") / 8
    ids, batches = torch.zeros(32, 64, device="npu"), torch.zeros(10, 32, 64).pin_memory()
    for step in range(10):
        batches[step].fill_(float(step))
        ids.copy_(batches[step], non_blocking=True)
        out = torch.tanh(ids @ weight).sum()
    return out.item()


def replayed():
    x, weight = torch.ones(4, 64, device="npu"), torch.eye(64, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        x.copy_(torch.tanh(x @ weight))
    for _ in range(6):
        x.fill_(1.0)
        graph.replay()
    spent = []
    for _ in range(6):
        begin = time.perf_counter()
        graph.replay()
        torch.npu.synchronize()
        spent.append(time.perf_counter() - begin)
    refilled = torch.zeros(4, 64).pin_memory()
    for step in range(6):
        refilled.fill_(float(step))
        x.copy_(refilled, non_blocking=True)
        graph.replay()
        torch.npu.current_stream().synchronize()  # before the host fills the memory again
    return len(spent)


def late():
    side = torch.npu.Stream()
    a, x = torch.randn(64, 64, device="npu") / 8, torch.randn(64, 64, device="npu")
    for _ in range(6):
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            shared = x @ a
        routed = torch.tanh(x @ a) @ a
        torch.npu.current_stream().wait_stream(side)
        out = shared + routed
    return out.sum().item()


print(pinned(), replayed(), late())
