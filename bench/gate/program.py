"""A program whose measures a gate holds, with one change at choice (--plant).

On the CPU it trains, with workers of a data loader. On the NPU it executes two graphs that it captured, on two
streams, in steps that it marks. It knows nothing of baselines.
"""
import argparse
import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from plants import PLANTS

try:
    import acltape
except ImportError:
    acltape = None

HIDDEN = 32

class Samples(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return torch.full((HIDDEN,), float(i % 7)), i % 4


def train(steps, workers, plant):
    hidden = HIDDEN + (plant == "larger_tensor")
    first, second = nn.Linear(HIDDEN, hidden), nn.Linear(hidden, 4)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    batches = iter(DataLoader(Samples(), batch_size=8, num_workers=workers))
    kept = None
    for step in range(steps):
        x, y = next(batches)
        h = torch.tanh(first(x))
        if plant == "copy":
            h = h.to(torch.float64).to(torch.float32)
        if plant == "graph":
            h = h * (1 + 0 * torch.nonzero(h[0] > 2).numel())
        if plant == "argument":
            h = h * (1 + step)
        if plant == "finding":
            h = h + torch.rand(8, HIDDEN)
        if plant == "moving_input":
            h = h + torch.from_numpy(x.numpy().copy())
        if plant != "operator_less":
            h = torch.relu(h)
        if plant == "launch":
            h = torch.sigmoid(h)
        if plant == "memory":
            kept = torch.zeros(256, 256) + 1
        out = second(h)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        if plant == "memory":
            kept.add_(1)
        if plant == "host_read":
            out.sum().item()
        optimizer.step()
        loss.item()


@torch.no_grad()
def serve(steps, plant):
    import torch_npu  # noqa: F401
    hidden = HIDDEN * (2 if plant == "larger_tensor" else 1)
    layers = [torch.randn(hidden, hidden).npu() / 8 for _ in range(3)]
    inputs = [torch.zeros(4, hidden).npu() for _ in layers]
    side = torch.npu.Stream()
    more = torch.npu.Stream() if plant == "stream" else None

    def capture(place):
        torch.tanh(inputs[place] @ layers[place])
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            result = torch.tanh(inputs[place] @ layers[place])
        return graph, result

    graphs = [capture(place) for place in range(3 if plant == "graph" else 2)]
    state = torch.ones(4, hidden).npu()
    for step in range(steps):
        with acltape.step() if acltape else contextlib.nullcontext():
            for place, (graph, result) in enumerate(graphs):
                inputs[place].copy_(state)
                if plant == "lost_capture" and place == 1:
                    result = torch.tanh(inputs[place] @ layers[place])
                elif plant != "execution_less" or place == 0:
                    graph.replay()
                state = result + 1
            with torch.npu.stream(side):
                torch.sigmoid(inputs[0])
            torch.npu.current_stream().wait_stream(side)
            if more is not None:
                with torch.npu.stream(more):
                    torch.sigmoid(inputs[0])
                torch.npu.current_stream().wait_stream(more)
            if plant == "copy":
                state = state.clone()
            if plant == "launch":
                state = torch.relu(state)
            if plant == "argument":
                state = state * (1 + step)
            if plant == "finding":
                state = state + torch.rand_like(state)
            if plant == "host_read":
                state.max().item()
            state.sum().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "npu"), default="cpu")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--plant", choices=sorted({plant for plants in PLANTS.values() for plant in plants}))
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if options.device == "cpu":
        train(options.steps, options.workers, options.plant)
    else:
        serve(options.steps, options.plant)


if __name__ == "__main__":
    main()
