"""Triton kernels between operators on a stream that is full most of the time. Prints "equal" at the end."""
import torch
import torch_npu  # noqa: F401  pylint: disable=unused-import
from acltape_triton import language as tl
from acltape_triton.kernel import TRITON as triton


@triton.jit
def add_one(x_ptr, BLOCK: tl.constexpr):
    places = x_ptr + tl.arange(0, BLOCK)
    tl.store(places, tl.load(places) + 1)


x = torch.zeros(8, dtype=torch.int64).npu()
for _ in range(400):
    add_one[(20,)](x, BLOCK=8)
    x.add_(1)
    x.sub_(1)
print("equal" if x.cpu().tolist() == [20 * 400] * 8 else x)
