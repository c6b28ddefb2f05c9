"""Training on several ranks: ranks_training.py KIND [ranks]. The losses are those of one process on the CPU."""
import ranks
import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH = 12, 8
KINDS = ("ddp", "fsdp", "fsdp2", "tensor_parallel", "zero")


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))


def shared_out(kind, plain, rank, count):
    """The model as this kind has it, and its optimizer."""
    from torch.distributed.device_mesh import init_device_mesh

    module = plain.npu()
    if kind in ("ddp", "zero"):
        module = nn.parallel.DistributedDataParallel(module, device_ids=[rank])
    elif kind == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        module = FullyShardedDataParallel(module, device_id=rank)
    elif kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("npu", (count,))
        for layer in module:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
    else:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = init_device_mesh("npu", (count,))
        module = parallelize_module(module, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return module, ZeroRedundancyOptimizer(module.parameters(), torch.optim.SGD, lr=0.1)
    return module, torch.optim.SGD(module.parameters(), lr=0.1, foreach=kind != "tensor_parallel")


def losses_of(module, optimizer, data):
    losses = []
    for inputs, wanted in data:
        loss = ((module(inputs) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def train(rank, count, kind):
    generator = torch.Generator().manual_seed(1)
    data = [(torch.randn(BATCH, 32, generator=generator), torch.randn(BATCH, 8, generator=generator))
            for _ in range(STEPS)]
    alone = model()
    wanted = losses_of(alone, torch.optim.SGD(alone.parameters(), lr=0.1), data)
    own = slice(None) if kind == "tensor_parallel" else slice(rank * BATCH // count, (rank + 1) * BATCH // count)
    losses = losses_of(*shared_out(kind, model(), rank, count), [(x[own].npu(), y[own].npu()) for x, y in data])
    if kind != "tensor_parallel":
        dist.all_reduce(losses)
        losses /= count
    farthest = (losses.cpu() - wanted).abs().max().item()
    assert farthest < 1e-5, f"rank {rank}, {kind}: losses are {farthest} away"


if __name__ == "__main__":
    ranks.run(train, int(ranks.argument(2, "2")), ranks.argument(1, "ddp"))
