"""Recurrent layers, forward and backward: what the NPU gives is what the CPU does.

The adapter takes an operator of its library for one layer with biases, and operators by name for the
others and for cells.
"""
import torch
import torch_npu  # noqa: F401
from torch import nn

LSTMS = {
    "one layer": {},
    "two layers": {"num_layers": 2},
    "both directions": {"bidirectional": True},
    "three layers in both directions, batch first": {
        "num_layers": 3, "bidirectional": True, "batch_first": True},
    "without biases": {"bias": False, "num_layers": 2},
}


def gradients(module, run, x):
    """The result, and the gradients of the input and of all parameters, on the CPU."""
    x = x.detach().requires_grad_()
    result = run(module, x)
    (result * torch.linspace(-1, 1, result.numel(), device=x.device).view_as(result)).sum().backward()
    return [tensor.detach().cpu() for tensor in
            (result, x.grad, *(parameter.grad for parameter in module.parameters()))]


def compare(name, make, run, x):
    torch.manual_seed(0)
    on_cpu, on_npu = make(), make().npu()
    on_npu.load_state_dict(on_cpu.state_dict())
    for cpu, npu in zip(gradients(on_cpu, run, x), gradients(on_npu, run, x.npu()), strict=True):
        torch.testing.assert_close(npu, cpu, rtol=1e-4, atol=1e-5, msg=lambda text: f"{name}: {text}")


def whole(module, x):
    """All outputs of a layer as one vector: the sequence and the last states."""
    sequence, (h, c) = module(x)
    return torch.cat([tensor.flatten() for tensor in (sequence, h, c)])


def stepwise(cell, x):
    h = c = torch.zeros(x.shape[1], cell.hidden_size, device=x.device)
    for step in x:
        h, c = cell(step, (h, c))
    return torch.cat([h, c])


x = torch.randn(5, 3, 12, generator=torch.Generator().manual_seed(1))
for name, options in LSTMS.items():
    compare(name, lambda: nn.LSTM(12, 8, **options), whole, x)  # noqa: B023  (it is called at once)
compare("cell", lambda: nn.LSTMCell(12, 8), stepwise, x)
print("equal")
