"""Generates tokens with the decoder of llm/: eagerly, or by one captured graph for each batch size."""
import argparse

import torch

from llm.cache import GrowingCache, StaticCache
from llm.config import Config
from llm.model import Model
from llm.sampling import greedy


class Graphs:
    """One graph for each batch size, over one cache and in one pool."""

    def __init__(self, model, cache, batches, device):
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self.tokens, self.results, self.graphs, pool = {}, {}, {}, None
        for batch in sorted(batches, reverse=True):
            token = torch.zeros(batch, 1, dtype=torch.long, device=device)
            model(token, self.position, cache)
            torch.npu.synchronize()
            graph = torch.npu.NPUGraph()
            with torch.npu.graph(graph, pool=pool):
                result = greedy(model(token, self.position, cache))
            pool = pool or graph.pool()
            self.tokens[batch], self.results[batch], self.graphs[batch] = token, result, graph

    def __call__(self, token, position):
        batch = token.shape[0]
        self.tokens[batch].copy_(token)
        self.position.copy_(position)
        self.graphs[batch].replay()
        return self.results[batch].clone()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cache", choices=("static", "growing"), default="static")
    parser.add_argument("--activation", default="silu")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--batches", default="2", help="batch sizes, in turns")
    parser.add_argument("--graphs", action="store_true")
    parser.add_argument("--compiled", action="store_true", help="compile the step with npugraph_ex")
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = Config()
    model = Model(config, args.activation).eval().to(args.device)
    batches = [int(batch) for batch in args.batches.split(",")]
    with torch.no_grad():
        cache = {"static": StaticCache, "growing": GrowingCache}[args.cache](config, max(batches), args.device)
        if args.graphs:
            step = Graphs(model, cache, batches, args.device)
        else:
            run = torch.compile(model, backend="npugraph_ex", dynamic=False) if args.compiled else model

            def step(token, position):
                return greedy(run(token, position, cache))
        said = []
        for batch in batches:
            token = torch.ones(batch, 1, dtype=torch.long, device=args.device)
            for place in range(args.tokens):
                token = step(token, torch.tensor([place], device=args.device))
                said.append(token[0, 0].item())
    print("tokens", *said)


if __name__ == "__main__":
    main()
