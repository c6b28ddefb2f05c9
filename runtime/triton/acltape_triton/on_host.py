"""Runs a kernel on the host and copies what it stored to the device (ACLTAPE_TRITON_ON_HOST=1).

A recording of a launch does not hold the kernel's code, so a replay leaves it out. Copies from the host it
has with their contents. The host waits for the stream, as it does not where the stream runs the kernel.
"""

import os

import torch

from acltape_triton import memory
from acltape_triton.device import device


def _bytes(tensor):
    begin = tensor.data_ptr()
    return begin, begin + tensor.numel() * tensor.element_size()


def is_chosen(launch):
    """False also where it cannot be done: while the stream captures, or with a tensor that has gaps."""
    if os.environ.get("ACLTAPE_TRITON_ON_HOST", "0") in ("", "0"):
        return False
    stream = torch.npu.current_stream().npu_stream
    return not device().captures(stream) and all(tensor.is_contiguous() for tensor in launch.tensors)


def run(launch, tensors):
    tensors = [tensor.detach() for tensor in tensors]  # names them inside of the launch, for a recording
    torch.npu.current_stream().synchronize()
    memory.written = []
    try:
        launch()
        stored = memory.written
    finally:
        memory.written = None
    for tensor in tensors:
        begin, end = _bytes(tensor)
        if any(first < end and begin < last for first, last in stored):
            content = memory.bytes_at(begin, end - begin)
            tensor.copy_(torch.from_numpy(content).view(tensor.dtype).view(tensor.shape))
