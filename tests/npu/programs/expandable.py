"""The allocator with expandable segments: ranges are reserved, and grow by pages."""
import os

os.environ["PYTORCH_NPU_ALLOC_CONF"] = "expandable_segments:True"
import torch  # noqa: E402
import torch_npu  # noqa: E402,F401

kept = [torch.full((1 << 18,), float(i), device="npu") for i in range(40)]
del kept[::2]
torch.npu.empty_cache()
kept += [torch.full((3 << 18,), float(i), device="npu") for i in range(10)]
assert kept[0].cpu()[-1] == 1.0 and kept[-1].cpu()[-1] == 9.0
segments = torch.npu.memory_snapshot()
assert any(segment.get("is_expandable") for segment in segments), "no expandable segment"
stats = torch.npu.memory_stats()
assert stats["allocated_bytes.all.current"] >= sum(t.numel() * 4 for t in kept)
print("equal")
