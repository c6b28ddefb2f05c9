#!/usr/bin/env python3
"""Trains a small multi-layer perceptron with cross entropy and SGD on synthetic classes.

Prints the loss of every step. With --device npu it runs on an NPU through torch_npu.
"""
import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--device", default="cpu", help="cpu, or npu with torch_npu installed")
    args = parser.parse_args()

    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(64, args.width), nn.ReLU(),
        nn.Linear(args.width, args.width), nn.Tanh(),
        nn.Linear(args.width, args.classes))
    if args.device != "cpu":
        model.to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    centres = torch.randn(args.classes, 64)
    losses = []
    for _ in range(args.steps):
        labels = torch.randint(args.classes, (args.batch_size,))
        batch = centres[labels] + 0.5 * torch.randn(args.batch_size, 64)
        if args.device != "cpu":
            labels, batch = labels.to(args.device), batch.to(args.device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", " ".join(f"{loss:.6f}" for loss in losses))


if __name__ == "__main__":
    main()
