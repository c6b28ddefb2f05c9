"""The status of results that saturate, by the adapter's functions. Prints "equal" in the end."""
import torch
import torch_npu


def status():
    return torch_npu.npu_get_float_status(torch.zeros(8).npu()).cpu()[0].item()


def main():
    assert not torch_npu.npu.utils.is_support_inf_nan()
    x = torch.tensor([40000.0], dtype=torch.float16).npu()
    assert status() == 0
    assert (x + x).item() == 65504
    assert status() != 0
    torch_npu.npu_clear_float_status(torch.zeros(8).npu())
    assert status() == 0
    print("equal")


main()
