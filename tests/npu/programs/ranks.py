"""Starts a function in a process for each rank of a group of devices; the programs ranks_*.py use it."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import torch_npu  # noqa: F401


def _begin(rank, ranks, store, function, arguments):
    torch.manual_seed(0)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=ranks, init_method=f"file://{store}")
    function(rank, ranks, *arguments)
    dist.destroy_process_group()


def run(function, ranks, *arguments):
    """function(rank, ranks, *arguments) on each rank; prints "equal" at the end if none raised."""
    with tempfile.TemporaryDirectory(prefix="acltape_ranks_") as folder:
        store = os.path.join(folder, "store")
        processes.spawn(_begin, args=(ranks, store, function, arguments), nprocs=ranks)
    print("equal")


def run_graph(step):
    """The step's result from a graph that ran three times."""
    step()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        made = step()
    for _ in range(3):
        graph.replay()
    return made


def argument(place, otherwise):
    return sys.argv[place] if len(sys.argv) > place else otherwise
