"""An operator that the soft device lacks fails with its name, and the program can go on."""
import torch
import torch_npu

boxes = torch.rand(4, 4).npu()
try:
    torch_npu.npu_stride_add(torch.rand(1, 32, 4, 4).half().npu(), torch.rand(1, 32, 4, 4).half().npu(),
                             0, 0, 1)
    torch.npu.synchronize()
except RuntimeError as error:
    print("refused:", str(error)[:300])
print("equal")
