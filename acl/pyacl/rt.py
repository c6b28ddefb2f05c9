"""The runtime: devices, contexts, streams, events, notifies, memory, copies, callbacks."""

import ctypes
import itertools
import threading

from acl import _binding

globals().update(_binding.functions("rt"))

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_launched = {}  # by the number that the device hands back; each is called once
_numbers = itertools.count(1)
_lock = threading.Lock()
_exception_callback = [None]  # kept alive while the device may call it


def _run_launched(number):
    with _lock:
        function, values = _launched.pop(number)
    function(values)


_run_launched_for_c = _FUNCTION(_run_launched)


def _need_callable(function, where):
    if not callable(function):
        raise TypeError(f"{where} must be callable, not {type(function).__name__}")


def launch_callback(fn, user_data_list, block_type, stream):
    """ret = acl.rt.launch_callback(fn, user_data_list, block_type, stream): aclrtLaunchCallback

    `fn(user_data_list)` runs in the thread that subscribed to the stream's reports.
    """
    _binding.tell_line()
    where = "of acl.rt.launch_callback(fn, user_data_list, block_type, stream)"
    _need_callable(fn, f"fn {where}")
    block = _binding.checked(f"block_type {where}", "i32", block_type)
    handle = _binding.checked(f"stream {where}", "address", stream)
    number = next(_numbers)
    _launched[number] = (fn, user_data_list)
    ret = _binding.library.aclrtLaunchCallback(
        _run_launched_for_c, ctypes.c_void_p(number), ctypes.c_int32(block), ctypes.c_void_p(handle))
    if ret != 0:
        del _launched[number]
    return ret


def set_exception_info_callback(fn=None):
    """ret = acl.rt.set_exception_info_callback(fn): aclrtSetExceptionInfoCallback

    `fn(info)` is called when a task fails; None takes it back.
    """
    _binding.tell_line()
    if fn is None:
        callback = _FUNCTION()
    else:
        _need_callable(fn, "fn of acl.rt.set_exception_info_callback(fn)")
        callback = _FUNCTION(lambda info: fn(info or 0))
    ret = _binding.library.aclrtSetExceptionInfoCallback(callback)
    if ret == 0:
        _exception_callback[0] = callback
    return ret
