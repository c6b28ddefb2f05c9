"""Results of graphs: overwritten before they are read, replaced, never read, and read as they should be."""
import threading

import torch
import torch_npu  # noqa: F401

from programs import captured, main


def fault_list():
    """results of all executions in a list are one tensor"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)  # finds: LINT-17
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y)
    return torch.stack(kept).tolist()


def right_list():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.clone())
    return torch.stack(kept).tolist()


def fault_read_apart():
    """kept results are read one by one, after the last execution"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)  # finds: LINT-17
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y)
    return torch.stack([one.sum() for one in kept]).tolist()


def right_read_apart():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.sum())
    return torch.stack(kept).tolist()


def fault_view():
    """views of other shapes are kept"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x + 1)  # finds: LINT-17
    kept = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.view(2, 2)[0])
    return torch.cat(kept).tolist()


def right_view():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x + 1)
    kept = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.view(2, 2)[0].clone())
    return torch.cat(kept).tolist()


def fault_dict():
    """a dictionary by request keeps detached results"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x.exp())  # finds: LINT-17
    by_request = {}
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        by_request[f"request {i}"] = y.detach()
    return torch.stack([by_request[f"request {i}"].amax() for i in range(3)]).tolist()


def right_dict():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x.exp())
    by_request = {}
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        by_request[f"request {i}"] = y.detach().clone()
    return torch.stack([by_request[f"request {i}"].amax() for i in range(3)]).tolist()


def fault_generator():
    """a generator gives its results to a list"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x - 1)  # finds: LINT-17

    def results():
        for i in range(3):
            x.fill_(float(i))
            graph.replay()
            yield y

    return torch.stack(list(results())).sum(1).tolist()


def right_generator():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x - 1)

    def results():
        for i in range(3):
            x.fill_(float(i))
            graph.replay()
            yield y

    return torch.stack([one.sum() for one in results()]).tolist()


def fault_change():
    """the change against the result before is that of a tensor and itself"""
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)  # finds: LINT-17
    graph.replay()
    before = y
    x.fill_(3.0)
    graph.replay()
    return (y - before).abs().tolist()


def right_change():
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)
    graph.replay()
    before = y.clone()
    x.fill_(3.0)
    graph.replay()
    return (y - before).abs().tolist()


def fault_thread():
    """a thread reads results when the next executions are done"""
    x, read = torch.zeros(4, device="npu"), []
    graph, y = captured(lambda: x * 5)  # finds: LINT-17
    handed = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        handed.append(y)
    thread = threading.Thread(target=lambda: read.extend(one.sum().item() for one in handed))
    thread.start()
    thread.join()
    return read


def right_thread():
    x, read = torch.zeros(4, device="npu"), []
    graph, y = captured(lambda: x * 5)
    handed = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        handed.append(y.clone())
    torch.npu.synchronize()
    thread = threading.Thread(target=lambda: read.extend(torch.stack([one.sum() for one in handed]).tolist()))
    thread.start()
    thread.join()
    return read


def fault_attribute():
    """an attribute that the forward sets is bound anew"""
    class Keeps(torch.nn.Module):
        kept = None

        def forward(self, t):
            self.kept = t * 3  # finds: LINT-46
            return self.kept + 1

    model, t = Keeps(), torch.ones(2, 4, device="npu")
    graph, _ = captured(lambda: model(t))
    model.kept = torch.full((2, 4), 100.0, device="npu")
    graph.replay()
    return model.kept.tolist()


def right_attribute():
    class KeepsInPlace(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(2, 4))

        def forward(self, t):
            self.kept.copy_(t * 3)
            return self.kept + 1

    model, t = KeepsInPlace().npu(), torch.ones(2, 4, device="npu")
    graph, _ = captured(lambda: model(t))
    model.kept.fill_(100.0)
    graph.replay()
    return model.kept.tolist()


def fault_of_one_pool():
    """a result lies in memory that another graph of the pool uses for its own"""
    x, pool = torch.ones(1024, device="npu"), torch.npu.graph_pool_handle()
    torch.npu.synchronize()
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    with torch.npu.graph(first, pool=pool):
        a = (x + 1).mul(2).sum()
    with torch.npu.graph(second, pool=pool):
        b = x * 7  # finds: LINT-17
    second.replay()
    first.replay()
    return [b.mean().item(), a.item()]


def right_of_one_pool():
    x, pool = torch.ones(1024, device="npu"), torch.npu.graph_pool_handle()
    torch.npu.synchronize()
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    with torch.npu.graph(first, pool=pool):
        a = (x + 1).mul(2).sum()
    with torch.npu.graph(second, pool=pool):
        b = x * 7
    first.replay()
    second.replay()
    return [b.mean().item(), a.item()]


def fault_other_graph():
    """the result of the graph of another size is read"""
    inputs = {n: torch.zeros(n, 4, device="npu") for n in (2, 4)}
    graphs = {n: captured(lambda n=n: inputs[n] * 2) for n in (2, 4)}
    kept = []
    for n in (1, 2, 2):
        inputs[4][:n].copy_(torch.full((n, 4), float(n), device="npu"))
        graphs[4][0].replay()
        kept.append(graphs[2][1][:n].sum())  # finds: LINT-53
    return torch.stack(kept).tolist()


def right_other_graph():
    inputs = {n: torch.zeros(n, 4, device="npu") for n in (2, 4)}
    graphs = {n: captured(lambda n=n: inputs[n] * 2) for n in (2, 4)}
    kept = []
    for n in (1, 2, 2):
        inputs[4][:n].copy_(torch.full((n, 4), float(n), device="npu"))
        graphs[4][0].replay()
        kept.append(graphs[4][1][:n].sum())
    return torch.stack(kept).tolist()


def right_timed():
    """A graph is executed several times for its time, and read once."""
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)
    for _ in range(5):
        graph.replay()
    return (y * y).tolist()


def fault_running_sum():
    """a running sum is the result of the graph itself"""
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)  # finds: LINT-17
    total = None
    for i in range(3):
        x.fill_(float(i + 2))
        graph.replay()
        total = y if total is None else total.add_(y)
    return total.tolist()


def right_running_sum():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)
    total = None
    for i in range(3):
        x.fill_(float(i + 2))
        graph.replay()
        total = y.clone() if total is None else total.add_(y)
    return total.tolist()


if __name__ == "__main__":
    main()
