"""Memory of graphs: weights and inputs that are replaced, let go, or loaded as they should be."""
import torch
import torch_npu  # noqa: F401

from programs import captured


class Layer:
    pass


def reloaded():
    x, layer = torch.ones(2, 64, device="npu"), Layer()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: x @ layer.w)  # finds: LINT-48
    layer.w = torch.full((64, 64), 2.0, device="npu").t().contiguous()
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return y[0, 0].item(), cache[0, 0].item()


def reloaded_in_place():
    x, layer = torch.ones(2, 64, device="npu"), Layer()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: x @ layer.w)
    layer.w.copy_(torch.full((64, 64), 2.0, device="npu").t())
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return y[0, 0].item(), cache[0, 0].item()


def captured_again():
    x, layer = torch.ones(2, 64, device="npu"), Layer()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    step = lambda: x @ layer.w
    graph, y = captured(step)
    graph.replay()
    layer.w = torch.full((64, 64), 2.0, device="npu")
    graph, y = captured(step)
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return y[0, 0].item(), cache[0, 0].item()


def input_replaced():
    held = Layer()
    held.x = torch.ones(32, device="npu")
    graph, y = captured(lambda: held.x.exp())  # finds: LINT-48
    values = []
    for i in range(3):
        held.x = torch.full((32,), float(i), device="npu")
        other = torch.full((32,), -1.0, device="npu")
        graph.replay()
        values.append((y[0].item(), other[0].item()))
    return values


def input_copied():
    held = Layer()
    held.x = torch.ones(32, device="npu")
    graph, y = captured(lambda: held.x.exp())
    values = []
    for i in range(3):
        held.x.copy_(torch.full((32,), float(i), device="npu"))
        graph.replay()
        values.append(y[0].item())
    return values


def piecewise():
    """Graphs of one pool, each of which reads what the one before makes."""
    x, pool = torch.ones(16, device="npu"), torch.npu.graph_pool_handle()
    graphs, value = [], x
    for _ in range(3):
        torch.tanh(value)
    torch.npu.synchronize()
    for _ in range(3):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            value = torch.tanh(value) + 1
        graphs.append(graph)
    values = []
    for i in range(3):
        x.fill_(float(i))
        for graph in graphs:
            graph.replay()
        values.append(value[0].item())
    return values


if __name__ == "__main__":
    for run in (reloaded, reloaded_in_place, captured_again, input_replaced, input_copied, piecewise):
        print(run.__name__, run())
