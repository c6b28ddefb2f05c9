"""Casts to private formats and back, and operators on tensors of such formats."""
import torch
import torch_npu

ND, NC1HWC0, FRACTAL_NZ = 2, 3, 29
torch.manual_seed(0)
for shape in ((16, 16), (33, 50), (2, 5, 7)):
    for dtype in (torch.float16, torch.float32):
        x = torch.randn(shape).to(dtype)
        fractal = torch_npu.npu_format_cast(x.npu(), FRACTAL_NZ)
        assert torch_npu.get_npu_format(fractal) == FRACTAL_NZ, shape
        back = torch_npu.npu_format_cast(fractal, ND)
        assert torch.equal(back.cpu(), x), f"there and back {shape} {dtype}"
        assert torch.equal(fractal.cpu(), x), f"read {shape} {dtype}"
image = torch.randn(2, 20, 6, 6)
blocked = torch_npu.npu_format_cast(image.npu(), NC1HWC0)
assert torch_npu.get_npu_format(blocked) == NC1HWC0
assert torch.equal(torch_npu.npu_format_cast(blocked, 0).cpu(), image), "NC1HWC0"

a, w = torch.randn(40, 33), torch.randn(33, 50)
weight = torch_npu.npu_format_cast(w.npu(), FRACTAL_NZ)
assert torch.allclose((a.npu() @ weight).cpu(), a @ w, atol=1e-4), "product with a cast weight"
assert torch.allclose((weight + 1).cpu(), w + 1), "sum of a cast tensor"
copied = weight.clone()
assert torch.equal(copied.cpu(), w), "copy of a cast tensor"
print("equal")
