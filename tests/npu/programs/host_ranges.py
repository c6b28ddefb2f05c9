"""The adapter's profiler writes the ranges that it saw on the host."""
import glob
import os
import sys

import torch
import torch_npu

folder = sys.argv[1]
handler = torch_npu.profiler.tensorboard_trace_handler(folder, analyse_flag=False)
with torch_npu.profiler.profile(activities=[torch_npu.profiler.ProfilerActivity.CPU,
                                            torch_npu.profiler.ProfilerActivity.NPU],
                                on_trace_ready=handler) as profiler:
    with torch.autograd.profiler.record_function("my_range"):
        x = torch.randn(8, 8).npu()
        (x @ x).sum().item()
    profiler.step()
files = [path for path in glob.glob(os.path.join(folder, "**"), recursive=True)
         if os.path.isfile(path)]
print("\n".join(files))
assert any(b"my_range" in open(path, "rb").read() for path in files), "no file names the range"
print("equal")
