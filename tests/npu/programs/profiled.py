"""Steps of training, and replays of a graph, under the adapter's profiler. Words: the folder of results, and "steps" or
"graph"."""
import sys

import torch
from torch import nn
from torch_npu import profiler

folder, what = sys.argv[1:]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)).npu()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(4, 32).npu()


def train():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def profiled(step, count):
    level = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
                          schedule=profiler.schedule(wait=0, warmup=1, active=count, repeat=1),
                          on_trace_ready=profiler.tensorboard_trace_handler(folder),
                          experimental_config=level) as profile:
        for _ in range(count + 1):
            step()
            torch.npu.synchronize()  # the step of the warm-up may otherwise still run when the profile begins
            profile.step()


if what == "steps":
    train()
    profiled(train, 2)
else:
    graph = torch.npu.NPUGraph()
    y = x @ x.T
    torch.npu.synchronize()
    with torch.npu.graph(graph):
        y = torch.tanh(x @ x.T)

    profiled(graph.replay, 3)
print("profiled")
