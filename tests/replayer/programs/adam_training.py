#!/usr/bin/env python3
"""Trains a small convolutional network with Adam, whose host scalars change with every step."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3), nn.GroupNorm(4, 16), nn.GELU(), nn.Dropout(0.2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    images, labels = torch.randn(4, 3, 16, 16), torch.randint(5, (4,))
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(loss.item())
