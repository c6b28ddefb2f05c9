"""Operators that the adapter has kernels of its own for, with gradients: a line for each."""
import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401

PRODUCTS = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)),
            ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((6, 2, 3, 4), (4,)), ((4,), (2, 4, 3)),
            ((2, 1, 3, 4), (5, 4, 2))]


def leaf(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).npu().requires_grad_()


def say(name, result, *leaves):
    result.square().sum().backward()
    print(name, result.sum().item(), *(x.grad.sum().item() for x in leaves if x.grad is not None))


def products():
    for left, right in PRODUCTS:
        a, b = leaf(*left), leaf(*right)
        say(f"{left} x {right}", torch.matmul(a, b), a, b)
    # Gradients and operands whose strides do not allow views.
    a, b = leaf(2, 4, 3), leaf(5, 4)
    say("transposed", torch.matmul(a.transpose(1, 2), b.t()).transpose(1, 2) * 2, a, b)
    a, b = leaf(2, 3, 4), leaf(4, 5)
    say("left alone", torch.matmul(a, b.detach()), a)
    say("right alone", torch.matmul(a.detach(), b), b)


def repetitions():
    for dim in (None, 0, -1):
        x = leaf(3, 4)
        say(f"repeat {dim}", x.repeat_interleave(2, dim), x)
    x = leaf(3, 4)
    print("repeat by", x.repeat_interleave(torch.tensor([1, 0, 2]).npu(), 0).sum().item())


def attention():
    mask = torch.tensor([[True, False, True], [True, True, False]]).npu()
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for name, options in (("plain", {}), ("causal", {"is_causal": True}), ("masked", {"attn_mask": mask}),
                              ("scaled", {"scale": 0.3})):
            q, k, v = (leaf(2, 4, length, 8, dtype=dtype) for length in (2, 3, 3))
            say(f"attention {name} {dtype}", F.scaled_dot_product_attention(q, k, v, **options), q, k, v)


def optimizers():
    for name, options in (("AdamW", {}), ("AdamW", {"amsgrad": True, "maximize": True}), ("Adam", {}),
                          ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1})):
        weights = [leaf(7, 9), leaf(9)]
        optimizer = getattr(torch.optim, name)(weights, lr=0.01, fused=True, **options)
        for _ in range(3):
            optimizer.zero_grad()
            sum(weight.square().sum() for weight in weights).backward()
            optimizer.step()
        print(name, *(weight.sum().item() for weight in weights))


torch.manual_seed(0)
products()
repetitions()
attention()
optimizers()
