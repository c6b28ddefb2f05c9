#!/usr/bin/env python3
"""GPT-style decoder that generates tokens greedily, one token a step, with a key/value cache.

By default the cache lives in fixed buffers and is written at an index tensor, so that every step
has the same shapes. With --growing-cache the keys and values are concatenated instead and every
step has other shapes. With --device npu it runs on an NPU through torch_npu; --graph captures the step
there once as an NPUGraph and replays it. Random weights, no download; prints the generated tokens.
"""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Pre-norm transformer block whose attention reads and writes a key/value cache."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        head = width // heads
        self.register_buffer("keys", torch.zeros(heads, length, head))
        self.register_buffer("values", torch.zeros(heads, length, head))
        self.grown = None

    def attend(self, query, key, value, mask):
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return torch.matmul(F.softmax(scores, dim=-1), value)

    def forward(self, hidden, position, mask, growing):
        width = hidden.shape[-1]
        query, key, value = self.qkv(self.norm1(hidden)).split(width, dim=-1)
        shape = (self.heads, 1, width // self.heads)
        query, key, value = query.view(shape), key.view(shape), value.view(shape)
        if growing:
            if self.grown is not None:
                key = torch.cat([self.grown[0], key], dim=1)
                value = torch.cat([self.grown[1], value], dim=1)
            self.grown = (key, value)
            mixed = self.attend(query, key, value, None)
        else:
            self.keys.index_copy_(1, position, key)
            self.values.index_copy_(1, position, value)
            mixed = self.attend(query, self.keys, self.values, mask)
        hidden = hidden + self.proj(mixed.reshape(1, width))
        return hidden + self.fc2(F.gelu(self.fc1(self.norm2(hidden))))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, length) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("slots", torch.arange(length))

    def forward(self, token, position, growing):
        hidden = self.token(token) + self.place(position)
        mask = None if growing else self.slots > position
        for block in self.blocks:
            hidden = block(hidden, position, mask, growing)
        return self.head(self.norm(hidden))


def captured(model, args):
    """The model as a graph that is captured now; its inputs are copied to where it reads them."""
    token = torch.zeros(1, dtype=torch.long, device=args.device)
    position = torch.zeros(1, dtype=torch.long, device=args.device)
    model(token, position, False)  # objects that the first use makes must be made outside of the graph
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        logits = model(token, position, False)

    def step(next_token, next_position, _):
        token.copy_(next_token)
        position.copy_(next_position)
        graph.replay()
        return logits

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=16, help="tokens to generate (steps)")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--growing-cache", action="store_true",
                        help="concatenate keys and values instead of writing fixed buffers")
    parser.add_argument("--device", default="cpu", help="cpu, or npu with torch_npu installed")
    parser.add_argument("--graph", action="store_true", help="replay a captured step (npu)")
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)

    torch.manual_seed(2)
    length = max(32, args.tokens)
    model = Decoder(args.vocabulary, args.width, args.heads, args.layers, length)
    model = model.eval().to(args.device)
    tokens = [1]
    with torch.no_grad():
        step = captured(model, args) if args.graph else model
        for place in range(args.tokens):
            token = torch.tensor([tokens[-1]], device=args.device)
            position = torch.tensor([place], device=args.device)
            logits = step(token, position, args.growing_cache)
            tokens.append(logits.argmax(dim=-1).item())
    print("tokens", tokens)


if __name__ == "__main__":
    main()
