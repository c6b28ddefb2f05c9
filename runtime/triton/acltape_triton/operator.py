"""The launch of a kernel as an operator of torch, `acltape::triton_kernel`, which a recording shows.

The schema says that each tensor may be written, because a kernel's arguments do not tell which are. A kernel that runs
on the host is `acltape::triton_on_host`: a recording has it with the copies of its results inside, and with the tensors
that it may have read.
"""

import ctypes
import functools
import os
import threading

import torch

from acltape_triton import on_host
from acltape_triton.device import device

_ARGUMENTS = "(Tensor(a!)[] tensors, str kernel, int[] grid, str arguments) -> ()"

_current = threading.local()  # the launch; an argument would be another number in each step
_library = torch.library.Library("acltape", "DEF")
_library.define("triton_kernel" + _ARGUMENTS)
_library.define("triton_on_host" + _ARGUMENTS)


class _Handle(ctypes.Structure):
    """c10_npu::NPUStream, as its functions take it."""
    _fields_ = [("device_type", ctypes.c_int8), ("device", ctypes.c_int8), ("number", ctypes.c_int64)]


def _get_stream(current):
    """What the adapter's own property gives. It waits for the adapter's queue and holds Python's lock."""
    return current.npu_stream


@functools.cache
def _stream_getter():
    """Gives the device's stream of a stream of torch, after what waits in the adapter's queue.

    A kernel in front of a full stream needs Python's lock before that queue can go on. So the adapter's function
    is called without it, where the library has the function and it gives what the property gives.
    """
    import torch_npu
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(torch_npu.__file__), "lib", "libtorch_npu.so"))
        function = library["_ZNK7c10_npu9NPUStream6streamEv"]
    except (OSError, AttributeError):
        return _get_stream
    function.restype = ctypes.c_void_p

    def get(current):
        handle = _Handle(current.device_type, current.device_index, current.stream_id)
        return function(ctypes.byref(handle))

    current = torch.npu.current_stream()
    return get if get(current) == current.npu_stream else _get_stream


def _stream():
    if getattr(torch, "npu", None) is None:
        raise RuntimeError("Triton kernels run on the soft device under torch_npu, which this process has not imported")
    return _stream_getter()(torch.npu.current_stream())


def _launch(tensors, kernel, grid, arguments):  # pylint: disable=unused-argument
    _current.launch.issue(device(), _stream())


def _run_on_host(tensors, kernel, grid, arguments):  # pylint: disable=unused-argument
    on_host.run(_current.launch, tensors)


for _key in ("PrivateUse1", "CompositeExplicitAutograd"):
    _library.impl("triton_kernel", _launch, _key)
    _library.impl("triton_on_host", _run_on_host, _key)


def call(launch):
    operators = torch.ops.acltape
    operator = operators.triton_on_host if on_host.is_chosen(launch) else operators.triton_kernel
    _current.launch = launch
    try:
        operator([tensor.detach() for tensor in launch.tensors], launch.kernel.fn.__name__, launch.grid,
                 ", ".join(launch.texts))
    finally:
        _current.launch = None
