"""Two networks with an optimizer each, trained in turns."""
import argparse

import torch
from torch import nn


def network(inside, outside):
    return nn.Sequential(nn.Linear(inside, 32), nn.LeakyReLU(0.2), nn.Linear(32, outside))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    maker, judge = network(8, 16).to(args.device), network(16, 1).to(args.device)
    made_by = torch.optim.Adam(maker.parameters(), lr=1e-3)
    judged_by = torch.optim.Adam(judge.parameters(), lr=1e-3)
    loss_of = nn.BCEWithLogitsLoss()
    yes, no = torch.ones(4, 1, device=args.device), torch.zeros(4, 1, device=args.device)
    data = torch.randn(args.steps, 4, 16)
    noise = torch.randn(args.steps, 4, 8)
    for step in range(args.steps):
        real, seed = data[step].to(args.device), noise[step].to(args.device)
        judged_by.zero_grad()
        judge_loss = loss_of(judge(real), yes) + loss_of(judge(maker(seed).detach()), no)
        judge_loss.backward()
        judged_by.step()
        made_by.zero_grad()
        maker_loss = loss_of(judge(maker(seed)), yes)
        maker_loss.backward()
        made_by.step()
    print(f"judge {judge_loss.item():.5f} maker {maker_loss.item():.5f}")


if __name__ == "__main__":
    main()
