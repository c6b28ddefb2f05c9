"""Loads, stores and atomic operations at addresses. The soft device's memory is the host's."""

import ctypes

import numpy

from acltape_triton import types
from acltape_triton.blocks import Block, block, cast


# Where kernels stored, as pairs of the first address and the end; None while nobody asks.
written = None


class _Area:
    """Memory from an address on, as numpy takes it."""

    def __init__(self, begin, count, kind):
        self.__array_interface__ = {"data": (begin, False), "shape": (count,), "typestr": kind.str, "version": 3}


def bytes_at(begin, count):
    """A copy of memory."""
    return numpy.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(begin)).copy()


def _places(addresses, kind):
    """The memory from the lowest address to the highest as an array, and the places of the addresses in it."""
    begin = int(addresses.min())
    offsets = (addresses - numpy.uint64(begin)).astype(numpy.int64)
    size = kind.stored.itemsize
    if (offsets % size).any():
        raise ValueError("addresses of one block are not a multiple of an element apart")
    return numpy.asarray(_Area(begin, int(offsets.max()) // size + 1, kind.stored)), offsets // size


def _pointers(pointer, call):
    if not isinstance(pointer, Block) or not pointer.type.is_ptr():
        raise TypeError(f"tl.{call} takes a pointer or a block of pointers")
    return pointer.type.element_ty


def _active(mask, shape):
    if mask is None:
        return None
    return numpy.broadcast_to(block(mask).values != 0, shape)


def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="",
         eviction_policy="", volatile=False):
    if isinstance(pointer, BlockPointer):
        return pointer.load(boundary_check, padding_option)
    kind = _pointers(pointer, "load")
    shape = pointer.values.shape if mask is None else numpy.broadcast_shapes(pointer.values.shape,
                                                                             block(mask).values.shape)
    addresses = numpy.broadcast_to(pointer.values, shape)
    active = _active(mask, shape)
    if active is None or active.all():
        if addresses.size == 0:
            return Block(numpy.zeros(shape, kind.held), kind)
        memory, places = _places(addresses, kind)
        return Block(types.from_memory(memory[places], kind), kind)
    result = numpy.zeros(shape, kind.held)
    if other is not None:
        result[...] = cast(block(other, kind), kind).values
    if active.any():
        memory, places = _places(addresses[active], kind)
        result[active] = types.from_memory(memory[places], kind)
    return Block(result, kind)


def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    if isinstance(pointer, BlockPointer):
        pointer.store(value, boundary_check)
        return
    kind = _pointers(pointer, "store")
    values = cast(block(value, kind), kind).values
    shapes = [pointer.values.shape, values.shape] + ([] if mask is None else [block(mask).values.shape])
    shape = numpy.broadcast_shapes(*shapes)
    addresses, values = numpy.broadcast_to(pointer.values, shape), numpy.broadcast_to(values, shape)
    active = _active(mask, shape)
    if active is not None:
        addresses, values = addresses[active], values[active]
    if addresses.size != 0:
        memory, places = _places(addresses, kind)
        memory[places] = types.to_memory(values, kind)
        if written is not None:
            written.append((int(addresses.min()), int(addresses.max()) + kind.stored.itemsize))


def _atomic(name, combine):
    def operation(pointer, value, mask=None, sem=None, scope=None):
        kind = _pointers(pointer, name)
        values = cast(block(value, kind), kind).values
        shape = numpy.broadcast_shapes(pointer.values.shape, values.shape)
        addresses, values = numpy.broadcast_to(pointer.values, shape), numpy.broadcast_to(values, shape)
        active = _active(True if mask is None else mask, shape)
        before = numpy.zeros(shape, kind.held)
        for place in zip(*numpy.nonzero(active)):  # one after another: addresses may be equal
            at = Block(addresses[place], pointer.type)
            old = load(at)
            before[place] = old.values
            store(at, Block(combine(old.values, values[place]), kind))
        return Block(before, kind)
    operation.__name__ = name
    return operation


atomic_add = _atomic("atomic_add", lambda old, new: old + new)
atomic_max = _atomic("atomic_max", numpy.maximum)
atomic_min = _atomic("atomic_min", numpy.minimum)
atomic_and = _atomic("atomic_and", lambda old, new: old & new)
atomic_or = _atomic("atomic_or", lambda old, new: old | new)
atomic_xor = _atomic("atomic_xor", lambda old, new: old ^ new)
atomic_xchg = _atomic("atomic_xchg", lambda old, new: new)


class BlockPointer:
    """A window of a tensor: tl.make_block_ptr."""

    def __init__(self, base, shape, strides, offsets, block_shape):
        self.base = base
        self.shape_of_all = [int(each) for each in shape]
        self.strides = [int(each) for each in strides]
        self.offsets = [int(each) for each in offsets]
        self.block_shape = [int(each) for each in block_shape]

    dtype = property(lambda self: self.base.type)

    def advanced(self, offsets):
        moved = [mine + int(more) for mine, more in zip(self.offsets, offsets)]
        return BlockPointer(self.base, self.shape_of_all, self.strides, moved, self.block_shape)

    def _window(self, boundary_check):
        """Pointers of the window, and which of them lie inside along the checked dimensions."""
        rank = len(self.block_shape)
        place = numpy.zeros(self.block_shape, numpy.int64)
        inside = numpy.ones(self.block_shape, numpy.bool_)
        for axis in range(rank):
            along = [1] * rank
            along[axis] = -1
            index = (numpy.arange(self.block_shape[axis]) + self.offsets[axis]).reshape(along)
            place = place + index * self.strides[axis]
            if axis in boundary_check:
                inside = inside & (index >= 0) & (index < self.shape_of_all[axis])
        return self.base + Block(place, types.int64), Block(inside, types.int1)

    def load(self, boundary_check, padding_option):
        pointers, inside = self._window(boundary_check)
        return load(pointers, inside, float("nan") if padding_option == "nan" else 0)

    def store(self, value, boundary_check):
        pointers, inside = self._window(boundary_check)
        store(pointers, value, inside)


def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    return BlockPointer(base, shape, strides, offsets, block_shape)


def advance(pointer, offsets):
    return pointer.advanced(offsets)
