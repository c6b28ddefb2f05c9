"""Tensors without memory that a recorder could know: of mkldnn's own layout, and nested ones."""
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    conv = nn.Conv2d(3, 4, 3).eval()
    weight = conv.weight.detach().to_mkldnn()
    bias = conv.bias.detach().to_mkldnn()
    with torch.no_grad():
        for step in range(4):
            x = torch.full((1, 3, 8, 8), float(step)).to_mkldnn()
            y = torch.relu(torch.conv2d(x, weight, bias)).to_dense()
            parts = torch.nested.nested_tensor([torch.ones(2, 4) * step, torch.ones(3, 4)])
            total = y.sum() + torch.relu(parts).to_padded_tensor(0.0).sum()
    print(f"total {total.item():.5f}")


if __name__ == "__main__":
    main()
