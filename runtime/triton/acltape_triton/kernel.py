"""Kernels: what @triton.jit makes of a function here, and how one is launched.

A launch takes the values and addresses of its arguments at once, as on a device. The body runs later, in the
order of the stream, once for each program of the grid.
"""

import dis
import functools
import inspect
import itertools
import struct
import types as python_types

import numpy

from acltape_triton import language, types
from acltape_triton.blocks import Block, block

try:
    from torch.compiler import is_compiling
except ImportError:  # an interpreter without torch, or with an old one
    def is_compiling():
        """Whether torch.compile follows the caller."""
        return False

# What tells a launch how to compile. Nothing is compiled.
OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "multibuffer", "debug", "enable_fp_fusion",
           "launch_cooperative_grid", "launch_pdl", "optimize_epilogue", "enable_auto_bind_sub_block"}


KERNELS = {}  # by their key


def _key(function):
    """A name by which another process finds the kernel too, unless functions of one name are made repeatedly."""
    name = f"{function.__module__}:{function.__qualname__}"
    return name if name not in KERNELS else f"{name}#{len(KERNELS)}"


class Config:
    """One choice of @triton.autotune."""

    def __init__(self, kwargs, num_warps=4, num_stages=None, num_ctas=1, maxnreg=None, pre_hook=None, **_):
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook


def _is_constant(annotation):
    """Whether this is tl.constexpr. It is None where a program has no Triton but a placeholder."""
    return annotation is None or "constexpr" in str(getattr(annotation, "__name__", annotation))


def _of_tl(value):
    """What a name of a kernel's module stands for when acltape interprets the kernel."""
    if isinstance(value, python_types.ModuleType):
        name = value.__name__
        if name == "triton" or name == "triton.language":
            return TRITON if name == "triton" else language
        return language if name.startswith("triton.language.") else value
    if isinstance(value, Kernel):
        return value.inside
    home = getattr(type(value), "__module__", "") or ""
    if home.startswith("triton."):
        if type(value).__name__ == "JITFunction":
            return Kernel.of(value.fn).inside
        if type(value).__name__ == "constexpr":
            return _of_tl(value.value)
        return types.named(value) or value
    named = getattr(value, "__module__", None)
    if isinstance(named, str) and named.startswith("triton.") and hasattr(language, getattr(value, "__name__", "")):
        return getattr(language, value.__name__)
    return value


class Kernel:
    """A function that is interpreted."""

    def __init__(self, function):
        self.fn = function
        self.parameters = list(inspect.signature(function).parameters.values())
        self.arg_names = [each.name for each in self.parameters]
        self.key = _key(function)
        KERNELS[self.key] = self
        self.constants = {each.name for each in self.parameters
                          if each.annotation is not inspect.Parameter.empty and _is_constant(each.annotation)}
        functools.update_wrapper(self, function)

    @staticmethod
    def of(function):
        """The kernel of a function; one for each."""
        kernel = getattr(function, "_acltape_kernel", None)
        if kernel is None:
            kernel = Kernel(function)
            function._acltape_kernel = kernel
        return kernel

    @functools.cached_property
    def inside(self):
        """The function with the language that is interpreted in the place of Triton's."""
        names = {name: _of_tl(value) if value is not self else None for name, value in self.fn.__globals__.items()
                 if name in self._names()}
        names["__builtins__"] = self.fn.__globals__.get("__builtins__", __builtins__)
        for name, chosen in (("min", language.minimum), ("max", language.maximum)):
            names.setdefault(name, language.either(chosen, getattr(__import__("builtins"), name)))
        function = python_types.FunctionType(self.fn.__code__, names, self.fn.__name__, self.fn.__defaults__,
                                             self._cells())
        function.__kwdefaults__ = self.fn.__kwdefaults__
        if names.get(self.fn.__name__, function) is None:
            names[self.fn.__name__] = function
        self._check_names(names)
        return function

    def _cells(self):
        if self.fn.__closure__ is None:
            return None
        return tuple(python_types.CellType(_of_tl(cell.cell_contents)) for cell in self.fn.__closure__)

    def _codes(self):
        waiting = [self.fn.__code__]
        while waiting:
            code = waiting.pop()
            yield code
            waiting += [each for each in code.co_consts if isinstance(each, python_types.CodeType)]

    def _names(self):
        return set(itertools.chain.from_iterable(code.co_names for code in self._codes()))

    def _check_names(self, names):
        """Refuses at once what the language lacks, because a failure on the device comes late."""
        modules = {name for name, value in names.items() if value is language}
        for code in self._codes():
            before = None
            for instruction in dis.get_instructions(code):
                if (instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and before in modules and
                        not hasattr(language, instruction.argval)):
                    raise NotImplementedError(
                        f"tl.{instruction.argval}, which the Triton kernel {self.fn.__name__} calls, is not among "
                        "what acltape interprets on the soft device")
                before = instruction.argval if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid)

    def __call__(self, *arguments, **named):
        raise RuntimeError(f"call the Triton kernel {self.fn.__name__} with a grid: kernel[grid](...)")

    def run(self, *arguments, grid, warmup=False, **named):
        """Launches the kernel on the current stream."""
        values = self._bound(arguments, named)
        if warmup:
            return
        grid = grid(dict(values)) if callable(grid) else grid
        sizes = [int(each) for each in (grid if isinstance(grid, (tuple, list)) else (grid,))]
        sizes += [1] * (3 - len(sizes))
        if is_compiling():
            from acltape_triton import compiled  # imports torch
            compiled.call(self, values, sizes)
            return
        if min(sizes) > 0:
            Launch(self, values, sizes).submit()

    def _bound(self, arguments, named):
        known = {name: value for name, value in named.items() if name in self.arg_names or name not in OPTIONS}
        bound = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in self.parameters])
        bound = bound.bind(*arguments, **known)
        bound.apply_defaults()
        return bound.arguments


def _element(tensor):
    kind = types.named(tensor.dtype)
    if kind is None:
        raise TypeError(f"{tensor.dtype} is no type of elements that acltape interprets")
    return kind


class Launch:
    """A kernel with the arguments of one launch."""

    def __init__(self, kernel, values, grid):
        self.kernel = kernel
        self.grid = grid
        self.body = kernel.inside
        self.tensors = []
        self.values = {}
        self.packed = b""
        self.texts = []
        for name, value in values.items():
            self.values[name] = self._taken(name, value)

    def _taken(self, name, value):
        """An argument as the body gets it; its bytes and its text are noted."""
        if hasattr(value, "data_ptr"):
            return self._address(name, value)
        if type(value).__module__.startswith("triton."):
            value = _of_tl(value)
        if str(type(value)) == "<class 'torch.dtype'>":
            value = types.named(value)
        self.texts.append(f"{name}={getattr(value, '__name__', value)}")
        if isinstance(value, tuple):
            return tuple(block(each) if isinstance(each, (int, float)) else each for each in value)
        if name in self.kernel.constants or not isinstance(value, (bool, int, float)):
            return value.inside if isinstance(value, Kernel) else value
        result = block(value)
        self.packed += struct.pack("<d", value) if isinstance(value, float) else struct.pack("<Q", value % (1 << 64))
        return result

    def _address(self, name, tensor):
        device = getattr(getattr(tensor, "device", None), "type", "npu")
        if device == "cpu":
            raise ValueError(f"the argument {name} of the Triton kernel {self.kernel.fn.__name__} is a tensor of the "
                             "host; a device cannot reach it")
        kind = _element(tensor)
        address = tensor.data_ptr()
        tensor = getattr(tensor, "base", tensor)
        place = next((at for at, each in enumerate(self.tensors) if each is tensor), len(self.tensors))
        if place == len(self.tensors):
            self.tensors.append(tensor)
        self.texts.append(f"{name}=tensors[{place}]")
        self.packed += struct.pack("<Q", address)
        return Block(numpy.uint64(address), types.pointer_type(kind))

    def submit(self):
        from acltape_triton import operator  # imports torch
        operator.call(self)

    def issue(self, device, stream):
        """Hands the launch to a stream of the device."""
        programs = self.grid[0] * self.grid[1] * self.grid[2]
        self.tensors = None  # addresses alone, as a device has them
        device.launch(self.kernel.fn.__name__, self, programs, self.packed, stream, keep=device.captures(stream))

    def __call__(self):
        """Runs all programs of the grid, one after another."""
        program = language.program
        program.grid = self.grid
        for z, y, x in itertools.product(*(range(size) for size in reversed(self.grid))):
            program.place = (x, y, z)
            self.body(**self.values)


def jit(function=None, **_):
    """@triton.jit, with or without options."""
    if function is None:
        return jit
    return function if isinstance(function, Kernel) else Kernel.of(function)


class _Wrapped:
    """A kernel with arguments that a decorator adds."""

    def __init__(self, kernel, added):
        self.kernel = kernel
        self.added = added  # from the arguments by name
        self.fn = getattr(kernel, "fn", kernel)
        self.arg_names = kernel.arg_names
        self.inside = kernel.inside if isinstance(kernel, _Wrapped) else None
        functools.update_wrapper(self, self.fn)

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid)

    def run(self, *arguments, grid, **named):
        known = {**dict(zip(self.arg_names, arguments)), **named}
        return self.kernel.run(*arguments, grid=grid, **{**named, **self.added(known)})


def autotune(configs=(), key=(), **_):
    """@triton.autotune. Times on a CPU say nothing of a device, so the first configuration is taken."""
    def added(known):
        return {name: value for name, value in configs[0].kwargs.items() if name not in known} if configs else {}
    return lambda kernel: _Wrapped(kernel, added)


def heuristics(values):
    """@triton.heuristics: arguments that are computed from the others."""
    def added(known):
        result = {}
        for name, compute in values.items():
            result[name] = compute({**known, **result})
        return result
    return lambda kernel: _Wrapped(kernel, added)


def cdiv(x, y):
    return (x + y - 1) // y


def next_power_of_2(n):
    return 1 << max(int(n) - 1, 0).bit_length()


# What vLLM's placeholder gets, and what a kernel's name for the module triton stands for.
EXPORTED = {each.__name__: each for each in (jit, autotune, heuristics, Config, cdiv, next_power_of_2)}
TRITON = python_types.SimpleNamespace(language=language, **EXPORTED)
