"""Values of a kernel: blocks of numbers or addresses with an element type, and the arithmetic on them.

The rules are Triton's, not numpy's: integers divide toward zero, a number of Python's takes the type of the
block beside it, and a pointer plus an int moves by elements.
"""

import functools

import numpy

from acltape_triton import types


class Block:
    """An array with an element type; a scalar is a block without dimensions."""

    __slots__ = ("values", "type")

    def __init__(self, values, kind):
        self.values = numpy.asarray(values)
        self.type = kind

    dtype = property(lambda self: self.type)
    shape = property(lambda self: list(self.values.shape))
    T = property(lambda self: Block(self.values.T, self.type))
    # Where a value of Triton's is a number known at the compilation, kernels ask for it so.
    value = property(lambda self: self)

    def __repr__(self):
        return f"{self.type}{list(self.values.shape)} {self.values}"

    def __bool__(self):
        if self.values.size != 1:
            raise TypeError("a block of more than one element has no truth; write & or |, or tl.where")
        return bool(self.values.reshape(())[()])

    def __index__(self):
        if self.type.kind in ("float", "pointer") or self.values.size != 1:
            raise TypeError(f"{self.type}{self.shape} is no integer")
        return int(self.values.reshape(())[()])

    __int__ = __index__

    def __float__(self):
        return float(self.values.reshape(())[()])

    def __hash__(self):
        return id(self)

    def __getitem__(self, places):
        places = places if isinstance(places, tuple) else (places,)
        if any(place is not None and place != slice(None) for place in places):
            raise TypeError("a block takes None and : as indices alone")
        return Block(self.values[places], self.type)

    def to(self, dtype, fp_downcast_rounding=None, bitcast=False):
        return cast(self, dtype, bitcast)

    def cast(self, dtype, fp_downcast_rounding=None, bitcast=False):
        return cast(self, dtype, bitcast)

    def __neg__(self):
        return Block(-self.values, self.type)

    def __pos__(self):
        return self

    def __invert__(self):
        return Block(~self.values, self.type)

    def __abs__(self):
        return Block(numpy.abs(self.values), self.type)

    def logical_and(self, other):
        return Block((self.values != 0) & (block(other).values != 0), types.int1)

    def logical_or(self, other):
        return Block((self.values != 0) | (block(other).values != 0), types.int1)


def element_type(other):
    """A type as this package knows it; `other` may be an object of another package's that stands for it."""
    if isinstance(other, (types.dtype, types.pointer_type)):
        return other
    found = types.named(other)
    if found is None:
        raise TypeError(f"{other} is no element type that acltape interprets")
    return found


def block(value, like=None):
    """A value as a block. A number of Python's takes the type of `like`, where that can hold it."""
    if isinstance(value, Block):
        return value
    if isinstance(value, numpy.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"{type(value).__name__} is no value of a kernel")
    kind = types.of_number(value)
    if like is not None and like.kind != "pointer":
        if like.kind == "float" or (kind.kind == "int" and like.kind in ("int", "uint") and _holds(like, value)):
            kind = like
    result = numpy.array(value, kind.held)
    return Block(types.round_to_bfloat16(result) if kind is types.bfloat16 else result, kind)


def _holds(kind, value):
    limits = numpy.iinfo(kind.held)
    return limits.min <= value <= limits.max


def cast(value, dtype, bitcast=False):
    value, dtype = block(value), element_type(dtype)
    if bitcast or value.type.kind == "pointer" or dtype.is_ptr():
        if dtype.is_ptr() or value.type.is_ptr():
            return Block(value.values.astype(dtype.held), dtype)
        return Block(types.from_memory(types.to_memory(value.values, value.type).view(dtype.stored), dtype), dtype)
    return Block(types.converted(value.values, value.type, dtype), dtype)


def pair(first, second):
    """Two operands as blocks."""
    if isinstance(first, Block):
        return first, block(second, first.type)
    second = block(second)
    return block(first, second.type), second


def rounded(values, kind):
    """A block of a result that numpy computed, perhaps in a wider type."""
    with numpy.errstate(all="ignore"):
        values = numpy.asarray(values).astype(kind.held, copy=False)
    return Block(types.round_to_bfloat16(values) if kind is types.bfloat16 else values, kind)


def binary(compute, first, second, division=False):
    """An operation on numbers of one type."""
    first, second = pair(first, second)
    kind = types.common(first.type, second.type, division)
    with numpy.errstate(all="ignore"):
        return rounded(compute(types.converted(first.values, first.type, kind),
                               types.converted(second.values, second.type, kind)), kind)


def _moved(pointer, offset, sign):
    step = offset.values.astype(numpy.int64) * (sign * pointer.type.element_ty.itemsize)
    return Block(pointer.values + step.astype(numpy.uint64), pointer.type)


def add(first, second):
    first, second = pair(first, second)
    if first.type.is_ptr():
        return _moved(first, second, 1)
    if second.type.is_ptr():
        return _moved(second, first, 1)
    if first.type.kind == second.type.kind == "bool":
        return Block(first.values ^ second.values, types.int1)
    return binary(numpy.add, first, second)


def subtract(first, second):
    first, second = pair(first, second)
    if first.type.is_ptr() and second.type.is_ptr():
        bytes_between = (first.values - second.values).astype(numpy.int64)
        return Block(bytes_between // first.type.element_ty.itemsize, types.int64)
    return _moved(first, second, -1) if first.type.is_ptr() else binary(numpy.subtract, first, second)


def divide(first, second):
    first, second = pair(first, second)
    if first.type.kind != "float" and second.type.kind != "float":
        first, second = cast(first, types.float32), cast(second, types.float32)
    return binary(numpy.divide, first, second, division=True)


def _quotient(first, second):
    """Toward zero, as C divides; by zero it gives 0."""
    divisor = numpy.where(second == 0, numpy.ones_like(second), second)
    quotient = (first - numpy.fmod(first, divisor)) // divisor
    return numpy.where(second == 0, numpy.zeros_like(quotient), quotient)


def floor_divide(first, second):
    first, second = pair(first, second)
    if "float" in (first.type.kind, second.type.kind):
        raise TypeError("// is for integers in Triton")
    return binary(_quotient, first, second)


def _remainder(first, second):
    if first.dtype.kind == "f":
        return numpy.fmod(first, second)
    divisor = numpy.where(second == 0, numpy.ones_like(second), second)
    return numpy.where(second == 0, numpy.zeros_like(first), numpy.fmod(first, divisor))


def remainder(first, second):
    return binary(_remainder, first, second, division=True)


def compare(compute, first, second):
    first, second = pair(first, second)
    if not first.type.is_ptr() and not second.type.is_ptr():
        kind = types.common(first.type, second.type)
        first, second = cast(first, kind), cast(second, kind)
    with numpy.errstate(all="ignore"):
        return Block(compute(first.values, second.values), types.int1)


def equal(first, second):
    return False if second is None or isinstance(second, str) else compare(numpy.equal, first, second)


def not_equal(first, second):
    return True if second is None or isinstance(second, str) else compare(numpy.not_equal, first, second)


def _operators():
    """Special methods of Block: what each computes, from the left and from the right."""
    of_numbers = {"mul": numpy.multiply, "and": numpy.bitwise_and, "or": numpy.bitwise_or,
                  "xor": numpy.bitwise_xor, "lshift": numpy.left_shift, "rshift": numpy.right_shift}
    computed = {name: functools.partial(binary, compute) for name, compute in of_numbers.items()}
    computed.update({"add": add, "sub": subtract, "truediv": divide, "floordiv": floor_divide, "mod": remainder})
    for name, compute in computed.items():
        setattr(Block, f"__{name}__", lambda self, other, compute=compute: compute(self, other))
        setattr(Block, f"__r{name}__", lambda self, other, compute=compute: compute(other, self))
    for name, compute in {"lt": numpy.less, "le": numpy.less_equal, "gt": numpy.greater,
                          "ge": numpy.greater_equal}.items():
        setattr(Block, f"__{name}__", lambda self, other, compute=compute: compare(compute, self, other))
    Block.__eq__ = equal
    Block.__ne__ = not_equal


_operators()
