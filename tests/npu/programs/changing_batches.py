"""A decoder over one static cache with a captured graph for each batch size, and batches that change. Prints the
tokens.
"""
import torch
import torch_npu  # noqa: F401  (registers the device)
from torch import nn

WIDTH, LENGTH, TOKENS, LARGEST = 32, 16, 50, 4
BATCHES = (4, 4, 2, 2, 1, 4, 4, 2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(LARGEST, LENGTH, WIDTH))
        self.register_buffer("values", torch.zeros(LARGEST, LENGTH, WIDTH))

    def forward(self, hidden, position, mask):
        batch = hidden.shape[0]
        query, key, value = self.qkv(self.norm1(hidden)).chunk(3, -1)
        keys, values = self.keys[:batch], self.values[:batch]
        keys.index_copy_(1, position, key.unsqueeze(1))
        values.index_copy_(1, position, value.unsqueeze(1))
        scores = (keys @ query.unsqueeze(-1)).squeeze(-1) / WIDTH**0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        hidden = hidden + self.proj((weights.unsqueeze(1) @ values).squeeze(1))
        return hidden + self.down(nn.functional.silu(self.up(self.norm2(hidden))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.register_buffer("slots", torch.arange(LENGTH))

    def forward(self, tokens, position):
        hidden, mask = self.token(tokens), self.slots > position
        for block in self.blocks:
            hidden = block(hidden, position, mask)
        return self.head(hidden).argmax(-1)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    net = Decoder().eval().npu()
    tokens = torch.zeros(LARGEST, dtype=torch.long).npu()
    position = torch.zeros(1, dtype=torch.long).npu()
    graphs, pool = {}, torch.npu.graph_pool_handle()
    for batch in (4, 2, 1):
        net(tokens[:batch], position)  # what the first use makes must be made outside of the graph
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            result = net(tokens[:batch], position)
        graphs[batch] = graph, result
    current = [1, 2, 3, 4]
    for place, batch in enumerate(BATCHES):
        tokens[:batch].copy_(torch.tensor(current[:batch]))
        position.fill_(place)
        graph, result = graphs[batch]
        graph.replay()
        current[:batch] = result.tolist()
    print("tokens", current)


if __name__ == "__main__":
    main()
