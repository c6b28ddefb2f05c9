"""One computation under each level of the task queue (TASK_QUEUE_ENABLE is the caller's)."""
import torch
import torch_npu  # noqa: F401

torch.manual_seed(0)
x = torch.randn(32, 32)
w = torch.randn(32, 32) / 6
cpu, npu = x, x.npu()
weight = w.npu()
for _ in range(50):
    cpu = torch.tanh(cpu @ w) + 0.1
    npu = torch.tanh(npu @ weight) + 0.1
assert torch.allclose(npu.cpu(), cpu, atol=1e-4)
print("equal")
