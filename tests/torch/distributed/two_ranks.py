"""Two processes train one layer by gloo: the gradients are summed over both in every step.

The ranks are told in the environment after the processes were started, as torch.multiprocessing does.
Prints a line for each rank; both lines end in the same number.
"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

STEPS = 4


def work(rank, folder):
    os.environ["RANK"] = str(rank)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=2)
    layer = torch.nn.Linear(6, 4)
    rate = torch.tensor(0.01)
    for step in range(STEPS):
        torch.manual_seed(10 * step + rank)
        x = torch.randn(3, 6)
        with torch.profiler.record_function("step"):
            loss = layer(x).square().mean()
            loss.backward()
            with torch.no_grad():
                for parameter in layer.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter.sub_(parameter.grad * rate)
                    parameter.grad = None
    with open(os.path.join(folder, str(rank)), "w") as file:
        file.write(f"rank {rank}: {layer.weight.double().sum().item():.9f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        mp.spawn(work, (place,), nprocs=2)
        for number in range(2):
            with open(os.path.join(place, str(number))) as line:
                print(line.read())
