"""Programs in which one call fails, by their first argument; "handled" ones expect it and go on.

  failing.py capture|gather|graph|update|memory-handled
"""
import sys

import torch
import torch_npu  # noqa: F401
from torch_npu.npu import (graph_task_group_begin, graph_task_group_end, graph_task_update_begin,
                           graph_task_update_end)


def capture():
    x = torch.ones(8, device="npu")
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x * 2
        y.sum().item()
    graph.replay()


def gather():
    table = torch.ones(8, 4, device="npu")
    rows = torch.index_select(table, 0, torch.tensor([1, 11], device="npu"))
    print(rows.sum().item())


def graph():
    table = torch.ones(8, 4, device="npu")
    index = torch.tensor([1, 2], device="npu")
    torch.index_select(table, 0, index)
    torch.npu.synchronize()
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        out = torch.index_select(table, 0, index) * 2
    for number in (3, 11):
        index.fill_(number)
        captured.replay()
        print(out.sum().item())


def update():
    a = torch.ones(8, device="npu")
    out, other = torch.empty_like(a), torch.empty_like(a)
    torch.npu.synchronize()
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        stream = torch.npu.current_stream()
        graph_task_group_begin(stream)
        torch.add(a, a, alpha=2.0, out=out)
        torch.add(a, a, alpha=3.0, out=other)
        group = graph_task_group_end(stream)
    updates = torch.npu.Stream()
    with torch.npu.stream(updates):
        graph_task_update_begin(updates, group)
        torch.add(a, a, alpha=4.0, out=out)
        graph_task_update_end(updates)


def memory_handled():
    size = 1 << 40
    while True:
        try:
            torch.empty(size, device="npu", dtype=torch.uint8)
            break
        except RuntimeError:
            size //= 8
    x = torch.ones(8, device="npu")
    for _ in range(4):
        x = x * 2
    torch.npu.synchronize()


PROGRAMS = {"capture": capture, "gather": gather, "graph": graph, "update": update, "memory-handled": memory_handled}
PROGRAMS[sys.argv[1]]()
