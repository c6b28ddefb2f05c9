#!/usr/bin/env python3
"""Two layers over a sequence that has another length at each step, so that no two steps have equal shapes."""
import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--device", default="cpu", help="cpu, or npu with torch_npu installed")
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(args.width, args.width), nn.GELU(), nn.LayerNorm(args.width),
                          nn.Linear(args.width, args.width)).eval().to(args.device)
    total = 0.0
    with torch.no_grad():
        for step in range(args.steps):
            rows = torch.randn(5 + 3 * step, args.width, device=args.device)
            total += model(rows).relu().mean().item()
    print("total %.6f" % total)


if __name__ == "__main__":
    main()
