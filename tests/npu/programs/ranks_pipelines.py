"""Pipelines of stages: ranks_pipelines.py SCHEDULE [ranks]. Losses and weights are those of one process on the CPU."""
import ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining

STEPS, BATCH, PARTS, WIDTH = 5, 16, 8, 32
# The schedule, and the number of stages on each rank.
KINDS = {"gpipe": (pipelining.ScheduleGPipe, 1), "1f1b": (pipelining.Schedule1F1B, 1),
         "interleaved": (pipelining.ScheduleInterleaved1F1B, 2)}


def model(stages):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(stages)))


def loss_of(seen, wanted):
    return ((seen - wanted) ** 2).mean()


def batches():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(BATCH, WIDTH, generator=generator), torch.randn(BATCH, WIDTH, generator=generator))
            for _ in range(STEPS)]


def trained_alone(stages):
    """The model after all steps in one process, and the loss of each step."""
    module, losses = model(stages), []
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for inputs, wanted in batches():
        loss = loss_of(module(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return module, losses


def train(rank, count, kind):
    schedule, per_rank = KINDS[kind]
    own = range(rank, per_rank * count, count)
    wanted_module, wanted_losses = trained_alone(per_rank * count)
    modules = {at: stage.npu() for at, stage in enumerate(model(per_rank * count)) if at in own}
    stages = [pipelining.PipelineStage(module, at, per_rank * count, torch.device("npu", rank))
              for at, module in modules.items()]
    pipeline = schedule(stages if per_rank > 1 else stages[0], n_microbatches=PARTS, loss_fn=loss_of)
    optimizer = torch.optim.SGD([weight for module in modules.values() for weight in module.parameters()], lr=0.1)
    losses = []
    for inputs, wanted in batches():
        optimizer.zero_grad()
        given = [inputs.npu()] if rank == 0 else []
        of_parts = []
        if rank == count - 1:
            pipeline.step(*given, target=wanted.npu(), losses=of_parts)
            losses.append(torch.stack(of_parts).mean().item())
        else:
            pipeline.step(*given)
        optimizer.step()
    for seen, wanted in zip(losses, wanted_losses):
        assert abs(seen - wanted) < 1e-5, f"rank {rank}, {kind}: loss {seen} in place of {wanted}"
    for at, module in modules.items():
        for seen, wanted in zip(module.parameters(), wanted_module[at].parameters()):
            farthest = (seen.cpu() - wanted).abs().max().item()
            assert farthest < 1e-5, f"rank {rank}, {kind}: weights of stage {at} are {farthest} away"
    dist.barrier()


if __name__ == "__main__":
    ranks.run(train, int(ranks.argument(2, "2")), ranks.argument(1, "1f1b"))
