"""The adapter's own operators that models for NPUs call, forward and backward, beside what they stand for on
the CPU. Prints "equal" in the end.
"""
import torch
import torch.nn.functional as F
import torch_npu

random = torch.Generator().manual_seed(3)


def of(*shape):
    return torch.randn(shape, generator=random)


def rms_norm(x, weight, epsilon=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, scale=0.25)


def fused_attention(query, key, value):
    return torch_npu.npu_fusion_attention(query, key, value, query.size(1), "BNSD", scale=0.25)[0]


ANGLES = of(1, 1, 5, 8)
# On the NPU, on the CPU, inputs.
USES = {
    "npu_rms_norm": (lambda x, w: torch_npu.npu_rms_norm(x, w)[0], rms_norm, (of(2, 5, 8), of(8))),
    "npu_swiglu": (torch_npu.npu_swiglu, lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], (of(3, 8),)),
    "npu_rotary_mul": (torch_npu.npu_rotary_mul, rotated, (of(2, 3, 5, 8), ANGLES.cos(), ANGLES.sin())),
    "npu_fusion_attention": (fused_attention, attention, (of(2, 4, 5, 16), of(2, 4, 6, 16), of(2, 4, 6, 16))),
    "npu_dtype_cast": (lambda x: torch_npu.npu_dtype_cast(x, torch.float16).float(), lambda x: x.half().float(),
                       (of(3, 4),)),
}
# These have no gradient.
FORWARD = {
    "npu_add_rms_norm": (lambda x, y, w: torch_npu.npu_add_rms_norm(x, y, w)[0],
                         lambda x, y, w: rms_norm(x + y, w), (of(2, 5, 8), of(2, 5, 8), of(8))),
    "npu_fast_gelu": (torch_npu.fast_gelu, lambda x: x * torch.sigmoid(1.702 * x), (of(4, 6),)),
}


def with_gradients(function, inputs, device):
    inputs = [x.detach().to(device).requires_grad_() for x in inputs]
    result = function(*inputs)
    (result * torch.linspace(0.5, 1.5, result.numel(), device=device).view(result.shape)).sum().backward()
    return [result.detach().cpu()] + [x.grad.cpu() for x in inputs]


def check(name, found, wanted):
    for ours, reference in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, reference, rtol=2e-3, atol=2e-3, msg=lambda text: f"{name}: {text}")


def main():
    for name, (on_npu, on_cpu, inputs) in USES.items():
        check(name, with_gradients(on_npu, inputs, "npu"), with_gradients(on_cpu, inputs, "cpu"))
    for name, (on_npu, on_cpu, inputs) in FORWARD.items():
        check(name, [on_npu(*[x.npu() for x in inputs]).cpu()], [on_cpu(*inputs)])
    print("equal")


main()
