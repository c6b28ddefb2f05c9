"""A decoder with RMSNorm, rotary embedding and grouped heads."""
import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.config, self.layer = config, layer
        width, small = config.width, config.key_heads * config.head_width
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, small, bias=False), nn.Linear(width, small, bias=False)

    def turned(self, x, angle):
        near, far = x.chunk(2, -1)
        return torch.cat([near * angle.cos() - far * angle.sin(), far * angle.cos() + near * angle.sin()], -1)

    def forward(self, x, position, angle, cache):
        config, batch = self.config, x.shape[0]
        q = self.turned(self.q(x).view(batch, config.heads, 1, -1), angle)
        k = self.turned(self.k(x).view(batch, config.key_heads, 1, -1), angle)
        v = self.v(x).view(batch, config.key_heads, 1, -1)
        keys, values = cache.extend(self.layer, k, v, position)
        group = config.heads // config.key_heads
        keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
        scores = torch.matmul(q, keys.transpose(-2, -1)) * config.head_width ** -0.5
        mask = cache.mask(position)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        return self.o(torch.matmul(scores.softmax(-1), values).reshape(batch, 1, -1))


class Layer(nn.Module):
    def __init__(self, config, layer, activation):
        super().__init__()
        self.before, self.after = RMSNorm(config.width), RMSNorm(config.width)
        self.attention = Attention(config, layer)
        self.gate, self.up = (nn.Linear(config.width, 2 * config.width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * config.width, config.width, bias=False)
        self.activation = getattr(F, activation)

    def forward(self, x, position, angle, cache):
        x = x + self.attention(self.before(x), position, angle, cache)
        y = self.after(x)
        return x + self.down(self.activation(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, config, activation="silu"):
        super().__init__()
        self.embed = nn.Embedding(config.words, config.width)
        self.layers = nn.ModuleList(Layer(config, i, activation) for i in range(config.layers))
        self.norm = RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.words, bias=False)
        half = config.head_width // 2
        self.register_buffer("speeds", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, token, position, cache):
        x = self.embed(token)
        angle = position * self.speeds
        for layer in self.layers:
            x = layer(x, position, angle, cache)
        return self.head(self.norm(x))
