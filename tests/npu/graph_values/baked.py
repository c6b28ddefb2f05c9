"""Arguments of the host that graphs keep, and programs that capture or update each of them."""
import random

import torch
import torch_npu  # noqa: F401

from programs import captured


def attend(k, q, n):
    return (torch.softmax(k[:n] @ q, 0) @ k[:n]).sum()  # finds: LINT-14


def sliced():
    k, q = torch.randn(64, 8, device="npu"), torch.randn(8, device="npu")
    wanted = [attend(k, q, n).item() for n in (8, 9, 10)]
    graph, out = captured(lambda: attend(k, q, 8))
    values = []
    for _ in (8, 9, 10):
        graph.replay()
        values.append(out.item())
    return wanted, values


def attend_by_graph(k, q, n):
    return (torch.softmax(k[:n] @ q, 0) @ k[:n]).sum()


def a_graph_for_each():
    k, q = torch.randn(64, 8, device="npu"), torch.randn(8, device="npu")
    wanted = [attend_by_graph(k, q, n).item() for n in (8, 9, 10)]
    graphs = {n: captured(lambda n=n: attend_by_graph(k, q, n)) for n in (8, 9, 10)}
    values = []
    for _ in range(2):
        for n in (8, 9, 10):
            graphs[n][0].replay()
            values.append(graphs[n][1].item())
    return wanted, values


def scaled(x, factor):
    return torch.nn.functional.dropout(x, 0.5) * factor  # finds: LINT-14


def drawn():
    x = torch.ones(256, device="npu")
    draw = lambda: scaled(x, 1.0 if random.random() > 0.3 else 0.0)
    eager = [int(draw().count_nonzero()) for _ in range(6)]
    graph, y = captured(draw)
    values = []
    for _ in range(4):
        graph.replay()
        values.append(int(y.count_nonzero()))
    return eager, values


def scaled_by_tensor(x, factor):
    return torch.nn.functional.dropout(x, 0.5) * factor


def drawn_into_a_tensor():
    x, factor = torch.ones(256, device="npu"), torch.ones((), device="npu")
    step = lambda: scaled_by_tensor(x, factor)
    graph, y = captured(step)
    values = []
    for _ in range(4):
        factor.fill_(1.0 if random.random() > 0.3 else 0.0)
        graph.replay()
        values.append(int(y.count_nonzero()))
    return values


def prompt_and_token(x, w):
    return torch.relu(x @ w)[: x.shape[0]].sum()


def other_shapes():
    """The prompt runs eagerly, the tokens after it in the graph."""
    w, token = torch.randn(8, 8, device="npu"), torch.randn(1, 8, device="npu")
    values = [prompt_and_token(torch.randn(n, 8, device="npu"), w).item() for n in (5, 7)]
    graph, out = captured(lambda: prompt_and_token(token, w))
    for _ in range(3):
        graph.replay()
        values.append(out.item())
    return values


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    for run in (sliced, a_graph_for_each, drawn, drawn_into_a_tensor, other_shapes):
        print(run.__name__, run())
