#!/usr/bin/env python3
"""Trains a transformer encoder on slices of one tensor."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(5, 2, 7, 32):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(float(loss))
