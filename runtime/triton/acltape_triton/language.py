"""triton.language, as far as it is interpreted. A kernel's name for it stands for this module.

What is not here names itself when a kernel that uses it is launched.
"""

import builtins
import threading

import numpy

from acltape_triton import types
from acltape_triton.blocks import Block, binary, block, cast, compare, element_type, pair, rounded
from acltape_triton.memory import (  # noqa: F401
    advance, atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, atomic_xchg, atomic_xor, load,
    make_block_ptr, store)
from acltape_triton.types import (  # noqa: F401
    bfloat16, float16, float32, float64, int1, int8, int16, int32, int64, pointer_type, uint8, uint16,
    uint32, uint64)

tensor = Block
dtype = types.dtype
program = threading.local()  # where the program that this thread runs lies in its grid


def constexpr(value):
    """What is known at the compilation is a value of Python's."""
    return value


def program_id(axis):
    return Block(numpy.int32(program.place[axis]), int32)


def num_programs(axis):
    return Block(numpy.int32(program.grid[axis]), int32)


# Making blocks.

def arange(start, end):
    return Block(numpy.arange(int(start), int(end), dtype=numpy.int32), int32)


def full(shape, value, dtype):
    dtype = element_type(dtype)
    return Block(numpy.broadcast_to(cast(block(value, dtype), dtype).values, _shape(shape)), dtype)


def zeros(shape, dtype):
    return full(shape, 0, dtype)


def zeros_like(input):
    return zeros(input.shape, input.type)


def _shape(shape):
    return tuple(int(each) for each in shape) if isinstance(shape, (list, tuple)) else (int(shape),)


def _shape_of(sizes):
    return _shape(sizes[0]) if len(sizes) == 1 else _shape(sizes)


def to_tensor(value):
    return block(value)


# Shapes.

def reshape(input, *shape, can_reorder=False):
    return Block(input.values.reshape(_shape_of(shape)), input.type)


view = reshape


def ravel(input, can_reorder=False):
    return Block(input.values.reshape(-1), input.type)


def expand_dims(input, axis):
    return Block(numpy.expand_dims(block(input).values, axis), block(input).type)


def broadcast_to(input, *shape):
    return Block(numpy.broadcast_to(block(input).values, _shape_of(shape)), block(input).type)


def broadcast(input, other):
    first, second = pair(input, other)
    shape = numpy.broadcast_shapes(first.values.shape, second.values.shape)
    return broadcast_to(first, shape), broadcast_to(second, shape)


def trans(input, *dims):
    order = _shape_of(dims) if dims else tuple(range_of_axes(input))[:-2] + (-1, -2)
    return Block(input.values.transpose(*[axis % input.values.ndim for axis in order]), input.type)


permute = trans


def range_of_axes(input):
    return builtins.range(input.values.ndim)


def join(input, other):
    first, second = pair(input, other)
    first, second = broadcast(first, second)
    return Block(numpy.stack([first.values, second.values], axis=-1), first.type)


def split(input):
    return Block(input.values[..., 0], input.type), Block(input.values[..., 1], input.type)


def interleave(input, other):
    joined = join(input, other).values
    return Block(joined.reshape(joined.shape[:-2] + (-1,)), input.type)


def cat(input, other, can_reorder=False, dim=0):
    return Block(numpy.concatenate([input.values, other.values], axis=dim), input.type)


def gather(src, index, axis):
    return Block(numpy.take_along_axis(src.values, index.values.astype(numpy.int64), axis), src.type)


def flip(input, dim=-1):
    return Block(numpy.flip(input.values, dim), input.type)


# Choices.

def where(condition, x, y):
    x, y = pair(x, y)
    if not x.type.is_ptr():
        kind = types.common(x.type, y.type)
        x, y = cast(x, kind), cast(y, kind)
    return Block(numpy.where(block(condition).values != 0, x.values, y.values), x.type)


def _extreme(ignoring_nan, with_nan):
    def choose(x, y, propagate_nan=None):
        return binary(with_nan if propagate_nan is PropagateNan.ALL else ignoring_nan, x, y)
    return choose


class PropagateNan:
    NONE = "NONE"
    ALL = "ALL"


minimum = _extreme(numpy.fmin, numpy.minimum)
maximum = _extreme(numpy.fmax, numpy.maximum)


def clamp(x, min, max, propagate_nan=None):
    return minimum(maximum(x, min, propagate_nan), max, propagate_nan)


# Arithmetic.

def cdiv(x, div):
    return (x + div - 1) // div


def _unary(compute):
    """A function of floats. Those of 16 bits are computed as float32, as is an integer."""
    def function(x, *_, **__):
        x = block(x)
        kind = x.type if x.type.is_floating() else float32
        wide = x.values.astype(float64.held if kind is float64 else numpy.float32)
        with numpy.errstate(all="ignore"):
            return rounded(compute(wide), kind)
    return function


def _sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def _erf(x):
    import math
    return numpy.vectorize(math.erf, otypes=[x.dtype])(x)


exp, exp2 = _unary(numpy.exp), _unary(numpy.exp2)
log, log2 = _unary(numpy.log), _unary(numpy.log2)
sin, cos = _unary(numpy.sin), _unary(numpy.cos)
sqrt = sqrt_rn = _unary(numpy.sqrt)
rsqrt = _unary(lambda x: 1 / numpy.sqrt(x))
sigmoid = _unary(_sigmoid)
erf = _unary(_erf)
floor, ceil = _unary(numpy.floor), _unary(numpy.ceil)
tanh = _unary(numpy.tanh)
log1p = _unary(numpy.log1p)


def abs(x):
    return builtins.abs(block(x))


def fma(x, y, z):
    return x * y + z


def div_rn(x, y):
    return x / y


fdiv = div_rn


def softmax(x, dim=0, keep_dims=False, ieee_rounding=False):
    powers = exp(x - max(x, dim, keep_dims=True))
    return powers / sum(powers, dim, keep_dims=True)


def dot(input, other, acc=None, input_precision=None, allow_tf32=None, max_num_imprecise_acc=None,
        out_dtype=float32):
    """A product of matrices, with sums as float32 or int32."""
    wide = int32 if input.type.is_int() else (float64 if input.type is float64 else float32)
    product = Block(numpy.matmul(input.values.astype(wide.held), other.values.astype(wide.held)), wide)
    if acc is not None:
        return cast(product + acc, acc.type)
    return product if wide is not float32 else cast(product, out_dtype)


# Reductions and scans.

def _reduced(compute, input, axis, keep_dims):
    return compute(input.values, axis=axis, keepdims=keep_dims)


def sum(input, axis=None, keep_dims=False, dtype=None):
    kind = input.type
    if dtype is not None:
        kind = element_type(dtype)
    elif kind.is_int() and kind.primitive_bitwidth < 32:
        kind = uint32 if kind.kind == "uint" else int32
    wide = kind.held if kind.is_int() else numpy.promote_types(kind.held, numpy.float32)
    with numpy.errstate(all="ignore"):
        return rounded(numpy.sum(input.values, axis=axis, keepdims=keep_dims, dtype=wide), kind)


def _chosen(best, first_place):
    def reduce(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
        result = Block(_reduced(best, input, axis, keep_dims), input.type)
        if not return_indices:
            return result
        return result, Block(_reduced(first_place, input, axis, keep_dims).astype(numpy.int32), int32)
    return reduce


max = _chosen(numpy.max, numpy.argmax)
min = _chosen(numpy.min, numpy.argmin)


def argmax(input, axis, tie_break_left=True, keep_dims=False):
    return Block(_reduced(numpy.argmax, input, axis, keep_dims).astype(numpy.int32), int32)


def argmin(input, axis, tie_break_left=True, keep_dims=False):
    return Block(_reduced(numpy.argmin, input, axis, keep_dims).astype(numpy.int32), int32)


def xor_sum(input, axis=None, keep_dims=False):
    return Block(_reduced(numpy.bitwise_xor.reduce, input, axis, keep_dims), input.type)


def _scan(compute):
    def scan(input, axis=0, reverse=False, dtype=None):
        kind = element_type(dtype) if dtype is not None else input.type
        values = numpy.flip(input.values, axis) if reverse else input.values
        wide = kind.held if kind.is_int() else numpy.promote_types(kind.held, numpy.float32)
        with numpy.errstate(all="ignore"):
            result = compute(values, axis=axis, dtype=wide)
        return rounded(numpy.flip(result, axis) if reverse else result, kind)
    return scan


cumsum, cumprod = _scan(numpy.cumsum), _scan(numpy.cumprod)


def sort(x, dim=None, descending=False):
    axis = -1 if dim is None else dim
    values = numpy.sort(x.values, axis=axis)
    return Block(numpy.flip(values, axis) if descending else values, x.type)


# Loops and hints.

def range(start, end=None, step=1, **_):
    if end is None:
        start, end = 0, start
    return builtins.range(int(start), int(end), int(step))


static_range = range


def _same(input, *_):
    return input


multiple_of = max_contiguous = max_constancy = _same


def _nothing(*_, **__):
    return None


debug_barrier = assume = static_print = _nothing


def static_assert(condition, message=""):
    if not condition:
        raise AssertionError(message)


def device_assert(condition, message="", mask=None):
    holds = block(condition).values != 0
    if mask is not None:
        holds = holds | (block(mask).values == 0)
    if not numpy.all(holds):
        raise AssertionError(f"tl.device_assert in program {program.place}: {message}")


def device_print(prefix, *values, hex=False):
    print(f"program {program.place}: {prefix}", *values, flush=True)


# Operations of the extension for Ascend devices, with its names of arguments.

def _slices(offsets, sizes, strides):
    return tuple(slice(int(o), int(o) + int(s) * int(d), int(d)) for o, s, d in zip(offsets, sizes, strides))


def insert_slice(ful, sub, offsets, sizes, strides):
    result = ful.values.copy()
    result[_slices(offsets, sizes, strides)] = cast(sub, ful.type).values
    return Block(result, ful.type)


def extract_slice(ful, offsets, sizes, strides):
    return Block(ful.values[_slices(offsets, sizes, strides)], ful.type)


def get_element(src, indice):
    return Block(src.values[tuple(int(each) for each in indice)], src.type)


def isfinite(x):
    return Block(numpy.isfinite(x.values), int1)


def isnan(x):
    return Block(numpy.isnan(x.values), int1)


def either(chosen, at_home):
    """Python's min or max, which a kernel may call with blocks."""
    def choose(*values):
        if len(values) == 2 and any(isinstance(each, Block) for each in values):
            return chosen(*values)
        return at_home(*values)
    return choose


def logical(compute):
    return lambda x, y: compare(compute, block(x), block(y))


logical_and, logical_or = logical(numpy.logical_and), logical(numpy.logical_or)
