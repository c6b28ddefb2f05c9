"""A decoder with a KV cache: the tokens of the CPU, of the NPU eager, of NPUGraph, of npugraph_ex
and of torchair's reduce-overhead mode."""
import sys

import torch
import torch_npu  # noqa: F401
from torch import nn

HIDDEN, HEADS, LENGTH, WORDS, TOKENS = 32, 4, 32, 50, 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, HIDDEN)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.up = nn.Linear(HIDDEN, 64)
        self.down = nn.Linear(64, HIDDEN)
        self.head = nn.Linear(HIDDEN, WORDS)
        self.register_buffer("keys", torch.zeros(HEADS, LENGTH, HIDDEN // HEADS))
        self.register_buffer("values", torch.zeros(HEADS, LENGTH, HIDDEN // HEADS))

    def forward(self, token, position):
        x = self.embed(token)
        q, k, v = self.qkv(x).view(3, HEADS, 1, -1)
        self.keys.index_copy_(1, position, k)
        self.values.index_copy_(1, position, v)
        scores = q @ self.keys.transpose(1, 2) / (HIDDEN // HEADS) ** 0.5
        future = torch.arange(LENGTH, device=token.device) > position
        scores = scores.masked_fill(future, -1e9)
        x = x + self.out((scores.softmax(-1) @ self.values).reshape(1, HIDDEN))
        x = x + self.down(torch.relu(self.up(x)))
        return self.head(x).argmax(-1)


def fresh(device):
    torch.manual_seed(1)
    return Decoder().to(device).eval()


@torch.no_grad()
def decode(step, device):
    token = torch.zeros(1, dtype=torch.long, device=device)
    tokens = []
    for i in range(TOKENS):
        token = step(token, torch.full((1,), i, dtype=torch.long, device=device)).clone()
        tokens.append(token.item())
    return tokens


@torch.no_grad()
def by_graph():
    model = fresh("npu")
    token = torch.zeros(1, dtype=torch.long, device="npu")
    position = torch.zeros(1, dtype=torch.long, device="npu")
    model(token, position)
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = model(token, position)

    def step(next_token, next_position):
        token.copy_(next_token)
        position.copy_(next_position)
        graph.replay()
        return result

    return decode(step, "npu")


def by_backend(backend):
    model = fresh("npu")
    return decode(torch.compile(model, backend=backend, dynamic=False, fullgraph=True), "npu")


def torchair_backend():
    import torchair
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    return torchair.get_npu_backend(compiler_config=config)


WAYS = {
    "eager": lambda: decode(fresh("npu"), "npu"),
    "graph": by_graph,
    "npugraph_ex": lambda: by_backend("npugraph_ex"),
    "torchair": lambda: by_backend(torchair_backend()),
}
expected = decode(fresh("cpu"), "cpu")
print("cpu", expected)
for name in sys.argv[1:] or WAYS:
    found = WAYS[name]()
    print(name, found)
    assert found == expected, name
print("equal")
