"""The element types of Triton's language, and how their values lie in memory and in numpy.

numpy has no bfloat16. Its values are kept as float32 and rounded after each operation.
"""

import numpy


class dtype:  # named as in Triton: kernels write tl.dtype
    """An element type. `held` is the numpy type of values, `stored` that of memory."""

    def __init__(self, name, kind, bits, held, stored=None):
        self.name = name
        self.kind = kind  # "int", "uint", "bool", "float"
        self.primitive_bitwidth = bits
        self.itemsize = max(bits // 8, 1)
        self.held = numpy.dtype(held)
        self.stored = numpy.dtype(stored or held)

    scalar = property(lambda self: self)

    def is_floating(self):
        return self.kind == "float"

    def is_int(self):
        return self.kind != "float"

    def is_ptr(self):
        return False

    def is_fp16(self):
        return self.name == "fp16"

    def is_bf16(self):
        return self.name == "bf16"

    def is_fp32(self):
        return self.name == "fp32"

    def is_int_signed(self):
        return self.kind == "int"

    def __repr__(self):
        return self.name


class pointer_type:
    """The type of an address of elements."""

    kind = "pointer"
    primitive_bitwidth = 64
    itemsize = 8
    held = stored = numpy.dtype(numpy.uint64)

    def __init__(self, element_ty, *_):
        self.element_ty = element_ty
        self.name = f"pointer<{element_ty}>"

    scalar = property(lambda self: self)

    def is_floating(self):
        return False

    def is_int(self):
        return False

    def is_ptr(self):
        return True

    def __eq__(self, other):
        return isinstance(other, pointer_type) and other.element_ty is self.element_ty

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name


int1 = dtype("int1", "bool", 1, numpy.bool_)
int8 = dtype("int8", "int", 8, numpy.int8)
int16 = dtype("int16", "int", 16, numpy.int16)
int32 = dtype("int32", "int", 32, numpy.int32)
int64 = dtype("int64", "int", 64, numpy.int64)
uint8 = dtype("uint8", "uint", 8, numpy.uint8)
uint16 = dtype("uint16", "uint", 16, numpy.uint16)
uint32 = dtype("uint32", "uint", 32, numpy.uint32)
uint64 = dtype("uint64", "uint", 64, numpy.uint64)
float16 = dtype("fp16", "float", 16, numpy.float16)
bfloat16 = dtype("bf16", "float", 16, numpy.float32, numpy.uint16)
float32 = dtype("fp32", "float", 32, numpy.float32)
float64 = dtype("fp64", "float", 64, numpy.float64)

ALL = (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64)
BY_NAME = {each.name: each for each in ALL}
# The names of torch's types, and those that Triton's own objects print.
BY_NAME.update({"bool": int1, "float16": float16, "bfloat16": bfloat16, "float32": float32, "float64": float64})


def named(other):
    """The type that another package's object of a type stands for, by its name; None where there is none."""
    return BY_NAME.get(str(other).rsplit(".", maxsplit=1)[-1])


def round_to_bfloat16(values):
    """The nearest bfloat16 of each float32, ties to even."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) & numpy.uint32(0xFFFF0000)
    rounded = numpy.where(numpy.isnan(values), bits | 0x400000, rounded) & numpy.uint32(0xFFFF0000)
    return rounded.astype(numpy.uint32).view(numpy.float32).reshape(numpy.shape(values))


def to_memory(values, kind):
    """Values as memory holds them."""
    if kind is bfloat16:
        return (numpy.ascontiguousarray(values).view(numpy.uint32) >> 16).astype(numpy.uint16).reshape(values.shape)
    return values.astype(kind.stored, copy=False)


def from_memory(values, kind):
    """Values of memory as they are computed with."""
    if kind is bfloat16:
        return (values.astype(numpy.uint32) << 16).view(numpy.float32)
    return values.astype(kind.held, copy=False)


def converted(values, source, target):
    """Values of one type in another, as the device converts: floats to ints toward zero."""
    with numpy.errstate(all="ignore"):
        if target.kind == "bool":
            return values != 0
        result = values.astype(target.held)
    return round_to_bfloat16(result) if target is bfloat16 and source is not bfloat16 else result


def of_number(value):
    """The type of a number of Python's that stands alone."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return int32
        return int64 if value < 1 << 63 else uint64
    return float32


def common(first, second, division=False):
    """The type in which two values are computed."""
    if first.kind == "float" or second.kind == "float":
        if first.kind != "float":
            first = second
        if second.kind != "float":
            second = first
        for each in (float64, float32):
            if each in (first, second):
                return each
        if division or first is not second:
            return float32 if division or bfloat16 in (first, second) else float16
        return first
    if first.primitive_bitwidth != second.primitive_bitwidth:
        return max(first, second, key=lambda each: each.primitive_bitwidth)
    return second if second.kind == "uint" else first
