"""Mixed precision with a gradient scaler, and a loader with pinned memory."""
import torch
import torch_npu  # noqa: F401
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 16), torch.randint(4, (64,))), batch_size=16,
                    pin_memory=True, pin_memory_device="npu")
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).npu()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.npu.amp.GradScaler(init_scale=1024.0)
losses = []
for _ in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.npu.amp.autocast(dtype=torch.float16):
            out = model(x.npu(non_blocking=True))
            assert out.dtype == torch.float16
            loss = nn.functional.cross_entropy(out.float(), y.npu(non_blocking=True))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
print(losses)
assert losses[-1] < losses[0] and all(loss == loss for loss in losses)
print("equal")
