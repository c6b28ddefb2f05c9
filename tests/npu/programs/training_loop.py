"""A training loop as users write it: a loader with workers, mixed precision with a scaler, clipped gradients,
AdamW and a schedule. Prints the loss.

    training_loop.py [WORKERS]
"""
import sys

import torch
import torch_npu  # noqa: F401  (registers the device)
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH, CLASSES, STEPS, BATCH = 32, 10, 3, 8


class Synthetic(Dataset):
    """Random rows; the class is that of the greatest projection."""

    def __init__(self):
        self.weight = torch.randn(WIDTH, CLASSES, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        row = torch.randn(WIDTH, generator=torch.Generator().manual_seed(index))
        return row, (row @ self.weight).argmax()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, hidden):
        return hidden + self.drop(self.down(nn.functional.gelu(self.up(self.norm(hidden)))))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    net = nn.Sequential(Block(), nn.Linear(WIDTH, CLASSES)).npu()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS)
    scaler = torch.amp.GradScaler("npu")
    batches = iter(DataLoader(Synthetic(), batch_size=BATCH, num_workers=workers))
    for _ in range(STEPS):
        rows, classes = (part.npu(non_blocking=True) for part in next(batches))
        with torch.autocast("npu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(net(rows), classes)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
