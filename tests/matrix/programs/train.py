"""A classifier that is trained: data loader with workers, mixed precision, accumulated gradients, a schedule."""
import argparse
import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    """Random points whose class is the greatest of some fixed projections."""

    def __init__(self, count, width, classes):
        self.count, self.width = count, width
        self.directions = torch.randn(width, classes, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        point = torch.randn(self.width, generator=torch.Generator().manual_seed(index))
        return point, (point @ self.directions).argmax()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm(x)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--log", action="store_true", help="read the loss at each step")
    parser.add_argument("--mark", action="store_true", help="mark the steps")
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--overflow", type=int, default=-1, help="the step whose input turns NaN")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    kind = args.device.split(":")[0]
    step_mark = contextlib.nullcontext
    if kind == "npu":
        import torch_npu  # noqa: F401  (registers the device)
    if args.mark:
        import acltape
        step_mark = acltape.step
    net = nn.Sequential(Residual(32), Residual(32), nn.Linear(32, 10)).to(args.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, args.steps)
    scaler = torch.amp.GradScaler(kind, enabled=args.amp and kind == "npu")
    loss_of = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    batches = iter(DataLoader(Points(1000, 32, 10), batch_size=8, num_workers=args.workers))
    low = torch.float16 if kind == "npu" else torch.bfloat16
    total = 0.0
    for step in range(args.steps):
        with step_mark():
            for part in range(args.accumulate):
                x, y = (each.to(args.device, non_blocking=True) for each in next(batches))
                if step == args.overflow and part == 0:
                    x = x * 1e38
                    x = x * 1e10 - x * 1e10
                with torch.autocast(kind, dtype=low, enabled=args.amp):
                    loss = loss_of(net(x), y) / args.accumulate
                scaler.scale(loss).backward()
            if args.log:
                total += loss.item()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
    print(f"loss {loss.item() * args.accumulate:.5f} total {total:.5f}")


if __name__ == "__main__":
    main()
