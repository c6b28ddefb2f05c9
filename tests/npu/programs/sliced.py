"""Attention over as many rows of a cache as a Python number says: eagerly, or with one graph for all numbers, which
keeps the first one.

  sliced.py eager|graph
"""
import sys

import torch
import torch_npu  # noqa: F401

torch.manual_seed(0)
cache = torch.randn(64, 8, device="npu")
query = torch.randn(8, device="npu")


def attend(rows):
    return (torch.softmax(cache[:rows] @ query, 0) @ cache[:rows]).sum()


attend(8)
torch.npu.synchronize()
graph = out = None
for rows in (8, 9, 10):
    if sys.argv[1] == "eager":
        out = attend(rows)
    elif graph is None:
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            out = attend(rows)
    if graph is not None:
        graph.replay()
    print(out.item())
