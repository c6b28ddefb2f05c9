"""A model that gets a sequence of another length at each step."""
import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 16)).to(args.device).eval()
    total = 0.0
    with torch.no_grad():
        for step in range(args.steps):
            x = torch.full((5 + 3 * step, 16), 0.25).to(args.device)
            y = net(net(x))
            total += y.softmax(-1).sum().item()
    print(f"total {total:.4f}")


if __name__ == "__main__":
    main()
