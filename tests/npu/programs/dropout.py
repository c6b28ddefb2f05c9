"""Steps with random numbers that the device makes: dropout, dropped weights of attention, fills."""
import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401

torch.manual_seed(0)
x, w = (torch.randn(shape).npu().requires_grad_() for shape in ((4, 8), (8, 8)))
q, k, v = (torch.randn(2, 4, length, 8).npu().requires_grad_() for length in (2, 3, 3))
for _ in range(3):
    with torch.profiler.record_function("step"):
        y = F.dropout(F.dropout(x @ w, 0.3) * 1.5, 0.5)
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2)
        noise = torch.rand(4, 8, device="npu") + torch.randn(4, 8, device="npu") + torch.rand_like(x)
        noise += torch.empty(4, 8, device="npu").bernoulli_(0.4)
        order = torch.randperm(8, device="npu")
        (y * noise)[:, order].sum().backward()
        attended.sum().backward()
    print(y.sum().item(), attended.sum().item(), x.grad.sum().item(), q.grad.sum().item(), order.tolist())
