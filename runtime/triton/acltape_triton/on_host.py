"""Runs a kernel on the host and copies what it stored to the device (ACLTAPE_TRITON_ON_HOST=1).

A recording of a launch does not hold the kernel's code, so a replay leaves it out. Copies from the host it
has with their contents. The host waits for the stream, as it does not where the stream runs the kernel.
"""

import torch

from acltape_triton import memory
from acltape_triton.device import device


def _bytes(tensor):
    begin = tensor.data_ptr()
    return begin, begin + tensor.numel() * tensor.element_size()


def run(launch):
    """False where that cannot be done: while the stream captures, or with a tensor that has gaps."""
    stream = torch.npu.current_stream()
    tensors = [tensor.detach() for tensor in launch.tensors]
    if device().captures(stream.npu_stream) or not all(tensor.is_contiguous() for tensor in tensors):
        return False
    stream.synchronize()
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
    return True
