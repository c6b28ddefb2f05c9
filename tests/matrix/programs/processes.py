"""Two processes that each run a model on the device (or the CPU), and a parent that only waits for them."""
import argparse
import subprocess
import sys

import torch


def work(args):
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(args.rank)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)).to(args.device)
    with torch.no_grad():
        for step in range(args.steps):
            x = torch.full((4, 16), float(step)).to(args.device)
            y = net(x).sum()
    print(f"rank {args.rank} {y.item():.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rank", type=int, default=-1)
    args = parser.parse_args()
    if args.rank >= 0:
        return work(args)
    words = [sys.executable, __file__, "--device", args.device, "--steps", str(args.steps), "--rank"]
    ranks = [subprocess.Popen(words + [str(rank)]) for rank in range(2)]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
