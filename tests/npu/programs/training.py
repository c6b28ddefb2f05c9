"""An MLP with AdamW and a small convolution network with SGD: the losses of CPU and NPU."""
import torch
import torch_npu  # noqa: F401
from torch import nn


def losses(make, optimizer, shape, classes, device, steps=5):
    torch.manual_seed(0)
    model = make().to(device)
    data = [torch.randn(shape) for _ in range(steps)]
    target = [torch.randint(classes, (shape[0],)) for _ in range(steps)]
    optimizer = optimizer(model.parameters())
    found = []
    for x, y in zip(data, target):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.GELU(approximate="tanh"), nn.LayerNorm(64),
                         nn.Linear(64, 10))


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


CASES = {
    "mlp": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2), (32, 20)),
    "convolutions": (convolutions, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), (8, 3, 16, 16)),
}
for name, (make, optimizer, shape) in CASES.items():
    cpu = losses(make, optimizer, shape, 10, "cpu")
    npu = losses(make, optimizer, shape, 10, "npu")
    print(name, "cpu", cpu, "npu", npu)
    assert all(abs(a - b) < 1e-4 for a, b in zip(cpu, npu)), name
print("equal")
