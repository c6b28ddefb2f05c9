"""Casts to private formats and back, and copies of tensors of such formats."""
import torch
import torch_npu

ND, NC1HWC0, FRACTAL_NZ = 2, 3, 29
torch.npu.config.allow_internal_format = True
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

w = torch.randn(33, 50)
weight = torch_npu.npu_format_cast(w.npu(), FRACTAL_NZ)
assert torch.equal(weight.clone().cpu(), w), "copy of a cast tensor"
weight.copy_(2 * w.npu())
assert torch.equal(weight.cpu(), 2 * w), "copy into a cast tensor"
parameter = torch.nn.Parameter(w.npu())
parameter.data = torch_npu.npu_format_cast(parameter.data, FRACTAL_NZ)
plain = torch_npu.npu_format_cast(parameter.data, ND)
a = torch.randn(40, 33)
assert torch.allclose((a.npu() @ plain).cpu(), a @ w, atol=1e-4), "product after casts"
assert torch.allclose((a.npu() @ weight).cpu(), a @ (2 * w), atol=1e-4), "product with a cast weight"
batch, weights = torch.randn(2, 40, 33), torch.randn(2, 33, 50)
cast = torch_npu.npu_format_cast(weights.npu(), FRACTAL_NZ)
assert torch.allclose((batch.npu() @ cast).cpu(), batch @ weights, atol=1e-4), "batches"
linear = torch.nn.Linear(33, 20, bias=False)
expected = linear(a)
linear = linear.npu()
linear.weight.data = torch_npu.npu_format_cast(linear.weight.data, FRACTAL_NZ)
assert torch.allclose(linear(a.npu()).cpu(), expected, atol=1e-4), "a layer with a cast weight"
print("equal")
