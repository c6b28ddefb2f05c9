#!/usr/bin/env python3
"""Decoder that serves batches of changing size with one NPUGraph per batch size over one static cache.

Each size gets a graph of its own before serving begins; all are captured in one memory pool. A step
copies its tokens and positions to where the graph of its size reads them, and executes that graph.
Random weights, no download; prints the generated tokens.
"""
import argparse
import math

import torch
import torch_npu  # noqa: F401  (registers the device)
from torch import nn

SIZES = (1, 2, 4, 8)


class Decoder(nn.Module):
    def __init__(self, words, width, slots, length):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, words)
        self.register_buffer("keys", torch.zeros(slots, length, width))
        self.register_buffer("values", torch.zeros(slots, length, width))
        self.register_buffer("places", torch.arange(length))

    def forward(self, token, position):
        batch = token.shape[0]
        hidden = self.embed(token)
        query, key, value = self.qkv(hidden).chunk(3, -1)
        keys, values = self.keys[:batch], self.values[:batch]
        keys.index_copy_(1, position, key.unsqueeze(1))
        values.index_copy_(1, position, value.unsqueeze(1))
        scores = torch.bmm(query.unsqueeze(1), keys.transpose(1, 2)) / math.sqrt(hidden.shape[-1])
        scores = scores.masked_fill(self.places > position, -1e9)
        hidden = hidden + self.out(torch.bmm(scores.softmax(-1), values).squeeze(1))
        hidden = hidden + self.down(torch.nn.functional.gelu(self.up(hidden)))
        return self.head(hidden).argmax(-1)


class Served:
    """One graph with the memory that it reads and writes."""

    def __init__(self, model, batch, pool):
        self.token = torch.zeros(batch, dtype=torch.long, device="npu")
        self.position = torch.zeros(1, dtype=torch.long, device="npu")
        model(self.token, self.position)
        torch.npu.synchronize()
        self.graph = torch.npu.NPUGraph()
        with torch.npu.graph(self.graph, pool=pool):
            self.result = model(self.token, self.position)

    def step(self, tokens, position):
        self.token.copy_(torch.tensor(tokens), non_blocking=True)
        self.position.fill_(position)
        self.graph.replay()
        return self.result.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=6, help="steps for each batch")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--words", type=int, default=97)
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 4, 8, 2, 1, 4])
    args = parser.parse_args()
    torch.manual_seed(3)
    model = Decoder(args.words, args.width, max(SIZES), 32).eval().to("npu")
    with torch.no_grad():
        pool = torch.npu.graph_pool_handle()
        graphs = {size: Served(model, size, pool) for size in SIZES}
        for batch in args.batches:
            tokens = list(range(1, batch + 1))
            for position in range(args.tokens):
                tokens = graphs[batch].step(tokens, position)
            print(batch, tokens)


if __name__ == "__main__":
    main()
