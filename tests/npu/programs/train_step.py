"""Trains a small net with dropout and AdamW on batches from the host."""
import torch
import torch_npu  # noqa: F401
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4)).npu()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(6):
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    loss = nn.functional.cross_entropy(net(x.to("npu", non_blocking=True)), y.to("npu"))
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
print("%.3f" % loss.item())
