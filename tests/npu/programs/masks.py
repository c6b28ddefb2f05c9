"""Dropout masks and random numbers on the device, eagerly and in a graph; their digests are printed."""
import hashlib

import torch
import torch_npu  # noqa: F401


def masks_of(draw, count):
    """The draws of one seed, one after the other."""
    torch.manual_seed(7)
    return [draw().cpu() for _ in range(count)]


def correlations(masks):
    """The greatest correlation of neighbours at lags 0 to 64."""
    greatest = 0.0
    for before, now in zip(masks, masks[1:]):
        a, b = (mask.double() - mask.double().mean() for mask in (before, now))
        scale = float((a.pow(2).sum() * b.pow(2).sum()).sqrt())
        for lag in range(65):
            greatest = max(greatest, abs(float(a[lag:] @ b[:len(b) - lag])) / scale)
    return greatest


def digest(tensors):
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tensors)).hexdigest()[:16]


ones = torch.ones(16384, device="npu")


def dropped():
    return (torch.nn.functional.dropout(ones, 0.5) != 0).float()


eager = masks_of(dropped, 8)
print("greatest correlation below 0.05:", correlations(eager) < 0.05)
noise = masks_of(lambda: torch.rand(16384, device="npu"), 4)
print("of uniform numbers:", correlations(noise) < 0.05)
side = torch.npu.Stream()
with torch.npu.stream(side):
    for _ in range(2):
        dropped()
torch.npu.synchronize()
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    mask = dropped()


def replayed():
    graph.replay()
    torch.npu.synchronize()
    return mask


print("captured as eager:", digest(masks_of(replayed, 8)) == digest(eager))
print(digest(eager), digest(noise))
