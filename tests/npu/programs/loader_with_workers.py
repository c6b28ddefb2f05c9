"""Training on the NPU with batches that worker processes make on the CPU."""
import torch
import torch_npu  # noqa: F401
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        row = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return row, row.sum()


torch.manual_seed(0)
model = nn.Linear(8, 1).to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for rows, sums in DataLoader(Rows(), batch_size=8, num_workers=2):
    loss = (model(rows.to("npu")).squeeze(-1) - sums.to("npu")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
