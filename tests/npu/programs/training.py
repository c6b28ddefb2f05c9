"""Models that are trained on the CPU and on the NPU: the losses are equal.

    training.py [NAME ...]  those of CASES; without a name, mlp and convolutions
"""
import sys

import torch
import torch_npu  # noqa: F401
from torch import nn


def losses(make, optimizer, data, device, steps):
    torch.manual_seed(0)
    model = make().to(device)
    inputs, targets = zip(*(data() for _ in range(steps)))
    optimizer = optimizer(model.parameters())
    found = []
    for x, y in zip(inputs, targets):
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


class Block(nn.Module):
    """The basic block of He et al., "Deep Residual Learning for Image Recognition" (CVPR 2016)."""

    def __init__(self, channels, to, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to))
        self.second = nn.Sequential(nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to))
        self.shortcut = nn.Identity() if channels == to and stride == 1 else nn.Sequential(
            nn.Conv2d(channels, to, 1, stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def resnet18():
    """ResNet-18 of the same paper, table 1, for ten classes."""
    stages = [Block(channels, to, stride) for channels, to, stride in (
        (64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
        (256, 512, 2), (512, 512, 1))]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(512, 10))


class Attention(nn.Module):
    """Causal attention of four heads by scaled_dot_product_attention."""

    def __init__(self, width):
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, 4, -1).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width))
        self.dense = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.dense(x)


class Transformer(nn.Module):
    """Predicts the next of 96 tokens from two layers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(96, 64)
        self.layers = nn.Sequential(Layer(64), Layer(64), nn.LayerNorm(64))
        self.head = nn.Linear(64, 96)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))).transpose(1, 2)


class Recurrent(nn.Module):
    """Two layers of LSTM over a sequence; its last state names one of ten classes."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(12, 32, num_layers=2, batch_first=True), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def images(count, size):
    return lambda: (torch.randn(count, 3, size, size), torch.randint(10, (count,)))


def features(*shape):
    return lambda: (torch.randn(shape), torch.randint(10, shape[:1]))


def tokens():
    text = torch.randint(96, (4, 17))
    return text[:, :-1], text[:, 1:]


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


# name: the model, its optimizer, what gives a batch and its targets, and how many steps
CASES = {
    "mlp": (mlp, adamw, features(32, 20), 5),
    "convolutions": (convolutions, sgd, images(8, 16), 5),
    "resnet18": (resnet18, lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9), images(8, 64), 4),
    "transformer": (Transformer, lambda p: torch.optim.AdamW(p, lr=1e-3), tokens, 5),
    "lstm": (Recurrent, lambda p: torch.optim.Adam(p, lr=1e-2), features(6, 9, 12), 5),
}
for name in sys.argv[1:] or ("mlp", "convolutions"):
    make, optimizer, data, steps = CASES[name]
    cpu, npu = (losses(make, optimizer, data, device, steps) for device in ("cpu", "npu"))
    print(name, "cpu", cpu, "npu", npu)
    assert all(abs(a - b) < 1e-4 for a, b in zip(cpu, npu, strict=True)), name
print("equal")
