"""What the programs of this folder share.

A program has functions `fault_NAME` and `right_NAME`. Both give back the values of the same work, so that a fault's
differ from its twin's. The first line of a fault's text says its mechanism.
"""
import json
import random
import sys

import torch


def captured(step, warm_ups=1):
    """The graph of `step`, and what its captured call gave back."""
    for _ in range(warm_ups):
        step()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = step()
    return graph, result


def rounds(graph, result, count, feed=lambda i: None):
    """Feeds and executes the graph `count` times; its results, which the host reads once."""
    kept = []
    for i in range(count):
        feed(i)
        graph.replay()
        kept.append(result.clone())
    return torch.stack(kept).tolist()


def by_time(fault):
    """Marks a fault whose values depend on time, so that they may look right."""
    fault.by_time = True
    return fault


def main():
    """Runs all functions of the program, or those that the command line names; prints their values by name."""
    module = sys.modules["__main__"]
    wanted = sys.argv[1:]
    values = {}
    for name, run in list(vars(module).items()):
        if not name.startswith(("fault_", "right_")) or (wanted and name not in wanted):
            continue
        torch.manual_seed(0)
        random.seed(0)
        values[name] = run()
        torch.npu.synchronize()
    print("values " + json.dumps(values))
