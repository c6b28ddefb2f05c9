"""What the host brings to the device gets the memory that a sum with a number of the host had before."""
import torch
import torch_npu  # noqa: F401

DEVICE = torch.device("npu:0")
x = torch.ones(256, device=DEVICE)
number = torch.tensor(1.5)  # on the host: the adapter gives it to its operator as a scalar
for way in ("tensor", "copy"):
    total = x + number
    address = total.data_ptr()
    torch.npu.synchronize()
    del total
    if way == "tensor":
        brought = torch.tensor([7.0] * 256, device=DEVICE)
    else:
        brought = torch.full((256,), 9.0).to(DEVICE, non_blocking=True)
    assert brought.data_ptr() == address
    print((brought + x).sum().item())
    del brought
