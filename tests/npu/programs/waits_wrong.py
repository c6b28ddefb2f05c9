"""Waits that a program can do without, one kind after the other. A comment names each line."""
import torch
import torch_npu  # noqa: F401
from torch import nn

torch.manual_seed(0)


def pageable():
    weight = torch.randn(64, 64, device="npu") / 8
    ids = torch.zeros(32, 64, device="npu")
    for step in range(10):
        batch = torch.full((32, 64), float(step))
        ids.copy_(batch, non_blocking=True)  # line: pageable
        out = torch.tanh(ids @ weight).sum()
    return out.item()


def synchronised():
    x, weight = torch.ones(4, 64, device="npu"), torch.eye(64, device="npu")
    graphs = []
    for _ in range(4):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            x.copy_(torch.tanh(x @ weight))
        graphs.append(graph)
    for _ in range(6):
        x.fill_(1.0)
        for graph in graphs:
            torch.npu.current_stream().synchronize()  # line: synchronised
            graph.replay()
    return x.sum().item()


def early():
    side = torch.npu.Stream()
    a, x = torch.randn(64, 64, device="npu") / 8, torch.randn(64, 64, device="npu")
    for _ in range(6):
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            shared = x @ a
        torch.npu.current_stream().wait_stream(side)  # line: early
        routed = torch.tanh(x @ a) @ a
        out = shared + routed  # line: needs
    return out.sum().item()


def framework():
    net = nn.Linear(64, 64).to("npu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("npu")
    lengths = 0
    for step in range(4):
        noise = torch.randn(8, 64).to("npu")  # line: random
        loss = net(noise).square().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)  # line: clip
        scaler.step(optimizer)  # line: scaler
        scaler.update()
        kept = noise[noise > 0]  # line: mask
        lengths = torch.tensor([step, step + 1], device="npu") + lengths  # line: list
        if (lengths.sum() > 100).item():  # line: item
            break
    return kept.shape, lengths


print(pageable(), synchronised(), early(), framework())
