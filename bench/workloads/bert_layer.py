#!/usr/bin/env python3
"""BERT-style encoder layers with a padding mask, once in float and once with half weights.

The half pass keeps weights and activations in float16 and computes in float32, as a CPU without
half arithmetic does. Random weights; prints a checksum of both passes for every batch.
"""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width)

    def linear(self, layer, x):
        if x.dtype != torch.float16:
            return layer(x)
        return F.linear(x.float(), layer.weight.float(), layer.bias.float()).half()

    def norm(self, layer, x):
        if x.dtype != torch.float16:
            return layer(x)
        return F.layer_norm(x.float(), layer.normalized_shape, layer.weight.float(),
                            layer.bias.float(), layer.eps).half()

    def forward(self, x, mask):
        batch, length, width = x.shape

        def split(t):
            return t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        query = split(self.linear(self.query, x)).float()
        key = split(self.linear(self.key, x)).float()
        value = split(self.linear(self.value, x)).float()
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads) + mask
        mixed = (F.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(batch, length, width)
        x = self.norm(self.norm1, x + self.linear(self.out, mixed.to(x.dtype)))
        hidden = F.gelu(self.linear(self.up, x).float()).to(x.dtype)
        return self.norm(self.norm2, x + self.linear(self.down, hidden))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=4, help="number of batches (steps)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=48, help="tokens per sequence")
    args = parser.parse_args()

    torch.manual_seed(4)
    single = nn.ModuleList(Encoder(args.width, args.heads) for _ in range(args.layers)).eval()
    half = nn.ModuleList(Encoder(args.width, args.heads) for _ in range(args.layers)).eval().half()
    with torch.no_grad():
        for batch in range(args.batches):
            x = torch.randn(2, args.length, args.width)
            lengths = torch.tensor([args.length, args.length - 1 - batch])
            keep = torch.arange(args.length)[None, :] < lengths[:, None]
            mask = torch.zeros(2, 1, 1, args.length).masked_fill(~keep[:, None, None, :], -10000.0)
            y, z = x, x.half()
            for layer in single:
                y = layer(y, mask)
            for layer in half:
                z = layer(z, mask)
            print(f"batch {batch}: float {y.double().sum().item():.6f} half {z.double().sum().item():.6f}")


if __name__ == "__main__":
    main()
