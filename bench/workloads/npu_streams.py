#!/usr/bin/env python3
"""One step on two NPU streams, captured as a graph: mm(a, b) on one, abs and sub on the other, then add.

The graph is right when the stream of the addition waits for the other one. --missing-wait leaves that
wait out: the program then adds the old result of an earlier step whenever the streams run so. Prints the
sum of each step.
"""
import argparse

import torch
import torch_npu  # noqa: F401  (registers the device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--missing-wait", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(3)
    a = torch.randn(args.width, args.width, device="npu")
    b = torch.randn(args.width, args.width, device="npu")
    side = torch.npu.Stream()

    def step():
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            product = torch.mm(a, b)
        difference = torch.sub(torch.abs(a), b)
        if not args.missing_wait:
            torch.npu.current_stream().wait_stream(side)
        total = torch.add(product, difference)
        if args.missing_wait:
            torch.npu.current_stream().wait_stream(side)  # the capture needs the stream to join
        return total

    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        total = step()
    for place in range(args.steps):
        a.copy_(torch.full_like(a, float(place)).add_(b.t()))
        graph.replay()
        print(place, f"{total.double().sum().item():.6f}")


if __name__ == "__main__":
    main()
