"""Launches of kernels in functions that torch compiles: the operator `acltape::triton_launch`.

torch.compile follows the Python of a launch, which needs addresses that a graph does not have. `call` is what it
follows instead: it writes the arguments as lists that a graph can hold, with sizes that may be symbols. The operator
launches the kernel when the graph is run. As a kernel's arguments do not tell what it writes, the schema says that
each tensor may be written.

The text names a kernel and the arguments' kinds, so that a compiled function may be kept and loaded by another
process: "x=tensor count=integer eps=real TYPE=torch.float16 BLOCK=integer add=kernel:module:name".
"""

import importlib

import torch

from acltape_triton import kernel as kernels

SCHEMA = ("triton_launch(Tensor(a!)[] tensors, str kernel, SymInt[] grid, SymInt[] integers, float[] reals, "
          "str arguments) -> ()")
_CONSTANTS = {"None": None, "True": True, "False": False}

_library = torch.library.Library("acltape", "FRAGMENT")
_library.define(SCHEMA)


def call(kernel, values, grid):
    """Launches the kernel by the operator. torch.compile follows this function."""
    tensors, integers, reals, texts = [], [], [], []
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            kind = "tensor"
        elif value is None or isinstance(value, bool):
            kind = str(value)
        elif isinstance(value, (int, torch.SymInt)):
            integers.append(value)
            kind = "integer"
        elif isinstance(value, float):
            reals.append(value)
            kind = "real"
        elif isinstance(value, torch.dtype):
            kind = str(value)
        elif isinstance(value, kernels.Kernel):
            kind = "kernel:" + value.key
        elif isinstance(value, str):
            kind = "text:" + value
        else:
            raise NotImplementedError(
                f"the argument {name} of the Triton kernel {kernel.key} is of a kind that a compiled function cannot "
                "pass on the soft device")
        texts.append(f"{name}={kind}")
    torch.ops.acltape.triton_launch(tensors, kernel.key, grid, integers, reals, " ".join(texts))


def _values(tensors, integers, reals, arguments):
    """The arguments by name, as `call` was given them."""
    kinds = {"tensor": iter(tensors), "integer": iter(integers), "real": iter(reals)}
    values = {}
    for text in arguments.split(" "):
        name, kind = text.split("=", 1)
        if kind in kinds:
            values[name] = next(kinds[kind])
        elif kind in _CONSTANTS:
            values[name] = _CONSTANTS[kind]
        elif kind.startswith("text:"):
            values[name] = kind[len("text:"):]
        elif kind.startswith("kernel:"):
            values[name] = _kernel(kind[len("kernel:"):])
        else:
            values[name] = getattr(torch, kind.removeprefix("torch."))
    return values


def _kernel(key):
    if key not in kernels.KERNELS:
        importlib.import_module(key.split(":")[0])
    return kernels.KERNELS[key]


def _launch(tensors, kernel, grid, integers, reals, arguments):
    if min(grid) > 0:
        kernels.Launch(_kernel(kernel), _values(tensors, integers, reals, arguments), list(grid)).submit()


_library.impl("triton_launch", _launch, "CompositeExplicitAutograd")


@torch.library.register_fake("acltape::triton_launch", lib=_library)
def _fake(tensors, kernel, grid, integers, reals, arguments):  # pylint: disable=unused-argument
    return None
