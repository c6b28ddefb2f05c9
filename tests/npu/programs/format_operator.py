"""Casts by aclnnNpuFormatCast, which the adapter calls from toolkit 9.1.0 on, and what its copies into cast
tensors do then: nothing."""
import torch
import torch_npu

ND, FRACTAL_NZ = 2, 29
torch.npu.config.allow_internal_format = True
torch.manual_seed(0)
for shape in ((16, 16), (33, 50), (2, 5, 7)):
    for dtype in (torch.float16, torch.float32):
        x = torch.randn(shape).to(dtype)
        fractal = torch_npu.npu_format_cast(x.npu(), FRACTAL_NZ)
        assert torch_npu.get_npu_format(fractal) == FRACTAL_NZ, shape
        assert torch.equal(torch_npu.npu_format_cast(fractal, ND).cpu(), x), f"there and back {shape} {dtype}"
w = torch.randn(24, 40)
weight = torch_npu.npu_format_cast(w.npu(), FRACTAL_NZ)
weight.copy_(2 * w.npu())
assert torch.equal(weight.cpu(), w), "the adapter copies now; the page says that it does not"
print("equal")
