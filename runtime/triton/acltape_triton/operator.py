"""The launch of a kernel as an operator of torch, `acltape::triton_kernel`, which a recording shows.

The schema says that each tensor may be written, because a kernel's arguments do not tell which are.
"""

import threading

import torch

from acltape_triton.device import device

SCHEMA = "triton_kernel(Tensor(a!)[] tensors, str kernel, int[] grid, str arguments) -> ()"

_current = threading.local()  # the launch; an argument would be another number in each step
_library = torch.library.Library("acltape", "DEF")
_library.define(SCHEMA)


def _stream():
    npu = getattr(torch, "npu", None)
    if npu is None:
        raise RuntimeError("Triton kernels run on the soft device under torch_npu, which this process has not imported")
    return npu.current_stream().npu_stream  # after what waits in the adapter's own queue


def _launch(tensors, kernel, grid, arguments):  # pylint: disable=unused-argument
    _current.launch.issue(device(), _stream())


for _key in ("PrivateUse1", "CompositeExplicitAutograd"):
    _library.impl("triton_kernel", _launch, _key)


def call(launch):
    _current.launch = launch
    try:
        torch.ops.acltape.triton_kernel([tensor.detach() for tensor in launch.tensors], launch.kernel.fn.__name__,
                                        launch.grid, ", ".join(launch.texts))
    finally:
        _current.launch = None
