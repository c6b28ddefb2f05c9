"""What the programs of this folder share."""
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
