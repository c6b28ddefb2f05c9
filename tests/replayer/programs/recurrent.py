#!/usr/bin/env python3
"""Runs an LSTM whose state passes from step to step; the first step makes the state."""
import torch
from torch import nn

torch.manual_seed(0)
embedding, lstm = nn.Embedding(20, 8), nn.LSTM(8, 16, 2)
state = None
with torch.no_grad():
    for _ in range(6):
        tokens = torch.randint(20, (5, 3))
        output, state = lstm(embedding(tokens), state)
        print(output.sum().item())
