"""Eager work on two streams of the device that wait for each other by events, with pinned copies."""
import torch
import torch_npu  # noqa: F401  (registers the device)


def main():
    torch.manual_seed(0)
    a = torch.randn(64, 64, device="npu")
    side = torch.npu.Stream()
    total = torch.zeros((), device="npu")
    host = torch.empty(64, 64, pin_memory=True)
    for step in range(6):
        host.fill_(step)
        x = host.to("npu", non_blocking=True)
        ready = torch.npu.Event()
        ready.record()
        with torch.npu.stream(side):
            side.wait_event(ready)
            product = torch.mm(x, a)
        near = torch.abs(x) - a
        torch.npu.current_stream().wait_stream(side)
        total += (product + near).sum()
        torch.npu.synchronize()
    print(f"total {total.item():.4f}")


if __name__ == "__main__":
    main()
