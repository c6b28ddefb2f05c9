"""An operator that the soft device lacks: the error that the program gets says its name. (For those that the adapter
calls by name see refused_by_name.py.)"""
import os

import torch
import torch_npu

x = torch.rand(4, 64).half().npu()
try:
    torch_npu.npu_dynamic_mx_quant(x)  # of chips after the one that the soft device is
    torch.npu.synchronize()
except RuntimeError as error:
    assert "aclnnDynamicMxQuant" in str(error), str(error)
else:
    raise SystemExit("the operator did not fail")
print("equal", flush=True)
os._exit(0)  # the device stays stopped, as a real one after a failed kernel
