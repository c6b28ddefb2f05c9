#!/usr/bin/env python3
"""Twelve equal layers over three batches, in versions: each flag is one edit of the script."""
import argparse

import torch
from torch.nn import functional as F
from torch.profiler import record_function

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--insert", type=int, help="log a statistic after this layer, for nobody")
parser.add_argument("--scale", type=int, help="multiply the result of this layer")
parser.add_argument("--relu", type=int, help="relu in place of gelu in this layer")
parser.add_argument("--slope", type=float, default=0.01, help="of a leaky relu after layer 2")
parser.add_argument("--drop", type=int, help="leave this layer out")
parser.add_argument("--rows", type=int, help="attend to so many rows of a weight at the end")
parser.add_argument("--inplace", action="store_true", help="add in place")
parser.add_argument("--unfused", action="store_true", help="matrix product and sum apart")
parser.add_argument("--reorder", action="store_true", help="the two branches the other way round")
parser.add_argument("--batches", type=int, default=3)
parser.add_argument("--seed", type=int, default=7, help="of weights and batches")
args = parser.parse_args()

torch.manual_seed(args.seed)
width = 16
layers = [[torch.randn(width, width) / 4, torch.randn(width), torch.randn(width, width) / 4]
          for _ in range(12)]
batches = [torch.randn(4, width) for _ in range(args.batches)]


def linear(x, weight, bias):
    return torch.mm(x, weight) + bias if args.unfused else torch.addmm(bias, x, weight)


def layer(number, x):
    weight, bias, gate = layers[number]
    if args.reorder:
        right = torch.sigmoid(torch.mm(x, gate))
        left = linear(x, weight, bias)
    else:
        left = linear(x, weight, bias)
        right = torch.sigmoid(torch.mm(x, gate))
    left = F.relu(left) if args.relu == number else F.gelu(left)
    mixed = left * right
    x = mixed.add_(x) if args.inplace else mixed + x
    if args.insert == number:
        x.abs().mean()
    if args.scale == number:
        x = x * 1.5
    return x


for batch in batches:
    with record_function("step"):
        x = batch
        for number in range(12):
            if number != args.drop:
                x = layer(number, x)
            if number == 2:
                x = F.leaky_relu(x, args.slope)
        if args.rows:
            x = torch.mm(torch.softmax(x[:, :args.rows], 1), layers[0][0][:args.rows])
        x.sum().item()
