"""Addresses of Python's data, data at addresses, and threads for callbacks.

An address is good as long as the object that it came from lives, or the memory that it names.
"""

import ctypes
import threading

from acl import _binding

# numpy's type numbers as its format characters.
_NUMPY_TYPES = {0: "?", 1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "l", 8: "L", 9: "q", 10: "Q",
                11: "f", 12: "d", 13: "g", 14: "F", 15: "D", 16: "G", 23: "e"}
_INVALID_PARAM = 100000
_threads = {}


def _address(where, value):
    address = _binding.checked(where, "address", value)
    if address == 0:
        raise ValueError(f"{where} is 0, which is no address")
    return address


def bytes_to_ptr(data):
    """ptr = acl.util.bytes_to_ptr(data): the address of a bytes object's content."""
    if not isinstance(data, bytes):
        raise TypeError(f"data of acl.util.bytes_to_ptr(data) must be bytes, not {type(data).__name__}")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


def ptr_to_bytes(ptr, size):
    """data = acl.util.ptr_to_bytes(ptr, size): a copy of `size` bytes at an address of the host."""
    where = "of acl.util.ptr_to_bytes(ptr, size)"
    count = _binding.checked(f"size {where}", "i64", size)
    if count < 0:
        raise ValueError(f"size {where} is {count}")
    return ctypes.string_at(_address(f"ptr {where}", ptr), count)


def numpy_to_ptr(array):
    """ptr = acl.util.numpy_to_ptr(array): the address of an array's first element."""
    interface = getattr(array, "__array_interface__", None)
    if interface is None:
        raise TypeError(f"array of acl.util.numpy_to_ptr(array) must be an array of numpy, not "
                        f"{type(array).__name__}")
    return interface["data"][0]


def numpy_contiguous_to_ptr(array):
    """ptr, array = acl.util.numpy_contiguous_to_ptr(array): the same of an array made contiguous."""
    numpy_to_ptr(array)
    import numpy

    whole = numpy.ascontiguousarray(array)
    return numpy_to_ptr(whole), whole


def ptr_to_numpy(ptr, shape, type):
    """array = acl.util.ptr_to_numpy(ptr, shape, type): memory of the host as an array, without a copy.

    `type` is a type number of numpy or what numpy.dtype takes.
    """
    import numpy

    where = "of acl.util.ptr_to_numpy(ptr, shape, type)"
    address = _address(f"ptr {where}", ptr)
    if not isinstance(shape, tuple):
        raise TypeError(f"shape {where} must be a tuple, not {shape.__class__.__name__}")
    if isinstance(type, int):
        if type not in _NUMPY_TYPES:
            raise ValueError(f"type {where} is {type}, which is no number of a type of numbers")
        type = _NUMPY_TYPES[type]
    dtype = numpy.dtype(type)
    count = 1
    for size in shape:
        count *= _binding.checked(f"shape {where}", "i64", size)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype).reshape(shape)


def start_thread(function, arguments):
    """thread_id, ret = acl.util.start_thread(function, arguments): runs function(arguments) in a thread."""
    if not callable(function):
        raise TypeError(f"function of acl.util.start_thread(function, arguments) must be callable, not "
                        f"{type(function).__name__}")
    thread = threading.Thread(target=function, args=(arguments,), daemon=True)
    thread.start()
    _threads[thread.ident] = thread
    return thread.ident, 0


def stop_thread(thread_id):
    """ret = acl.util.stop_thread(thread_id): waits until the thread's function has returned."""
    thread = _threads.pop(_binding.checked("thread_id of acl.util.stop_thread(thread_id)", "u64", thread_id), None)
    if thread is None:
        return _INVALID_PARAM
    thread.join()
    return 0
