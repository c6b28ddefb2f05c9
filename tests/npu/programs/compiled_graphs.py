"""Graphs that a framework captures for its user: graph trees, npugraph_ex and graphed callables.

    compiled_graphs.py            these
    compiled_graphs.py torchair   those of torchair, which cannot be in one process with npugraph_ex
"""
import sys

import torch
import torch_npu  # noqa: F401
from torch import nn


def model():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)).npu()


def torchair_backend():
    from torch_npu.dynamo import torchair
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    return torchair.get_npu_backend(compiler_config=config)


def infer(compiled, rows):
    with torch.no_grad():
        for count in rows:
            torch.compiler.cudagraph_mark_step_begin()
            print(compiled(torch.randn(count, 8).npu()).sum().item())


def train(step, parameters):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        loss = step(torch.randn(5, 8).npu()).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


def main():
    torch.manual_seed(0)
    if "torchair" in sys.argv:
        infer(torch.compile(model(), backend=torchair_backend(), dynamic=False), (4, 4, 4))
        return
    infer(torch.compile(model(), backend="npugraphs", dynamic=False), (2, 2, 2, 3, 3, 3, 2))
    infer(torch.compile(model(), backend="npugraph_ex", dynamic=False), (4, 4, 4))
    infer(torch.compile(model(), backend="npugraph_ex", dynamic=True), (2, 5, 3, 2, 5))
    trained = model()
    train(torch.compile(trained, backend="npugraphs"), trained.parameters())
    trained = model()
    train(torch.npu.make_graphed_callables(trained, (torch.ones(5, 8, device="npu"),)), trained.parameters())


if __name__ == "__main__":
    main()
