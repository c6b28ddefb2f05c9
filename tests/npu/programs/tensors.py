"""Tensors, copies, streams and events: what the NPU computes is what the CPU computes."""
import torch
import torch_npu  # noqa: F401

torch.manual_seed(0)
a, b = torch.randn(64, 32), torch.randn(32, 48)
npu = (a.npu() @ b.npu()).relu().sum(1)
assert torch.allclose(npu.cpu(), (a @ b).relu().sum(1), atol=1e-4), "product"

side = torch.npu.Stream()
ready = torch.npu.Event()
x = torch.arange(1000, dtype=torch.float32).npu()
with torch.npu.stream(side):
    y = x * 2
    ready.record(side)
torch.npu.current_stream().wait_event(ready)
assert (y + x).cpu().tolist() == [3.0 * i for i in range(1000)], "streams"

pinned = torch.randn(256).pin_memory()
assert pinned.is_pinned(), "pinned memory"
there = pinned.npu(non_blocking=True)
torch.npu.synchronize()
assert torch.equal(there.cpu(), pinned), "copy of pinned memory"

index = torch.tensor([3, 1, 2])
assert torch.equal(x.npu()[index.npu()].cpu(), torch.tensor([3.0, 1.0, 2.0])), "index"
state = torch.npu.get_rng_state()
one = torch.rand(8, device="npu").cpu()
torch.npu.set_rng_state(state)
assert torch.equal(one, torch.rand(8, device="npu").cpu()), "random numbers repeat"
properties = torch.npu.get_device_properties(0)
print("device", properties.name, properties.total_memory)
free, total = torch.npu.mem_get_info()
assert 0 < free <= total
print("equal")
