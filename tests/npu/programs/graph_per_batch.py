"""A decoder with a graph per batch size over one static cache; it reads each token with item()."""
import torch
import torch_npu
from torch import nn

DIM, VOCAB, SEQ = 32, 64, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(DIM, DIM)
        self.kv = nn.Linear(DIM, 2 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x, cache, position):
        batch = x.shape[0]
        k, v = self.kv(x).chunk(2, -1)
        cache[0, :batch].index_copy_(1, position, k[:, None])
        cache[1, :batch].index_copy_(1, position, v[:, None])
        scores = torch.bmm(cache[0, :batch], self.q(x)[:, :, None]).squeeze(-1)
        return x + self.out(torch.bmm(scores.softmax(-1)[:, None], cache[1, :batch]).squeeze(1))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens, cache, position):
        x = self.embed(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, cache[i], position)
        return self.head(x)


class Server:
    def __init__(self):
        self.model = Decoder().npu().eval()
        self.cache = torch.zeros(2, 2, 8, SEQ, DIM, device="npu")
        self.graphs, self.tokens, self.logits = {}, {}, {}
        self.position = torch.zeros(1, dtype=torch.long, device="npu")
        pool = None
        for size in (8, 4, 2, 1):
            tokens = torch.zeros(size, dtype=torch.long, device="npu")
            self.model(tokens, self.cache, self.position)  # warm-up
            torch.npu.synchronize()
            graph = torch_npu.npu.NPUGraph()
            with torch_npu.npu.graph(graph, pool=pool):
                logits = self.model(tokens, self.cache, self.position)
            pool = pool or graph.pool()
            self.graphs[size], self.tokens[size], self.logits[size] = graph, tokens, logits

    def step(self, batch, position):
        size = len(batch)
        self.tokens[size].copy_(torch.tensor(batch))
        self.position.fill_(position)
        self.graphs[size].replay()
        return [self.logits[size][i].argmax().item() for i in range(size)]


def main():
    torch.manual_seed(0)
    with torch.no_grad():
        server = Server()
        position = 0
        for size in (1, 2, 4, 8, 2, 1):
            batch = list(range(size))
            for _ in range(2):
                batch = server.step(batch, position)
                position += 1
            print(size, batch)


main()
