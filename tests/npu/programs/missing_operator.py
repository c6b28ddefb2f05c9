"""An operator that the soft device lacks: the error that the program gets says its name."""
import os

import torch
import torch_npu

a, b = (torch.rand(1, 32, 4, 4).half().npu() for _ in range(2))
try:
    torch_npu.npu_stride_add(a, b, 0, 0, 1)
    torch.npu.synchronize()
    raise SystemExit("the operator did not fail")
except RuntimeError as error:
    assert "StrideAdd" in str(error), str(error)
print("equal", flush=True)
os._exit(0)  # the device stays stopped, as a real one after a failed kernel
