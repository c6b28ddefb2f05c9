"""Launches functions of Python as kernels of a stream of the soft device.

A launch is aclrtLaunchKernelWithHostArgs of a kernel on the AI CPU, with the kernel's name and arguments; so
captures keep it, graphs execute it again, and a recorder sees it. The kernel's code is one C function
(kernel.c), which calls the function of Python whose address comes first among the arguments.
"""

import atexit
import ctypes
import itertools
import os
import struct
import sys
import traceback

_FROM_DATA = 2      # cpuKernelMode: a library in memory, whose kernels are registered
_CPU_KERNEL_MODE = 3


class _LoadOption(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_int32 * 4)]


class _LoadOptions(ctypes.Structure):
    _fields_ = [("options", ctypes.POINTER(_LoadOption)), ("count", ctypes.c_size_t)]


class Device:
    """The kernels of this process."""

    def __init__(self):
        self.process = os.getpid()
        self.acl = ctypes.CDLL("libascendcl.so")
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("aclrtBinaryLoadFromData", "aclrtRegisterCpuFunc", "aclrtLaunchKernelWithHostArgs",
                     "aclrtSynchronizeDevice"):
            getattr(self.acl, name).restype = ctypes.c_int
        self.binary = ctypes.c_void_p()
        self.functions = {}
        self.launches = {}
        self.numbers = itertools.count(1)
        self.call = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64)(self._run)
        self._load()
        # Work that is left must not call into an interpreter that has ended.
        atexit.register(self._finish)

    def _check(self, code, what):
        if code != 0:
            reason = (self.acl.aclGetRecentErrMsg() or b"").decode(errors="replace").strip()
            raise RuntimeError(f"{what}: error {code}. {reason}")

    def _load(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libkernel.so")
        with open(path, "rb") as file:
            image = file.read()
        option = _LoadOption(_CPU_KERNEL_MODE, (ctypes.c_int32 * 4)(_FROM_DATA))
        options = _LoadOptions(ctypes.pointer(option), 1)
        self._check(self.acl.aclrtBinaryLoadFromData(image, ctypes.c_size_t(len(image)), ctypes.byref(options),
                                                     ctypes.byref(self.binary)), "loading the kernels")

    def _function(self, name):
        if name not in self.functions:
            function = ctypes.c_void_p()
            self._check(self.acl.aclrtRegisterCpuFunc(self.binary, b"AcltapeTritonKernel", name.encode(),
                                                      ctypes.byref(function)), f"registering the kernel {name}")
            self.functions[name] = function
        return self.functions[name]

    def launch(self, name, run, programs, arguments, stream, keep):
        """Has the stream call run(). `arguments` are the kernel's own as bytes; `keep` while a graph may hold it."""
        number = next(self.numbers)
        self.launches[number] = (name, run, keep)
        address = ctypes.cast(self.call, ctypes.c_void_p).value
        packed = struct.pack("<QQ", address, number) + arguments
        code = self.acl.aclrtLaunchKernelWithHostArgs(
            self._function(name), ctypes.c_uint32(programs), ctypes.c_void_p(stream), None, packed,
            ctypes.c_size_t(len(packed)), None, ctypes.c_size_t(0))
        if code != 0:
            del self.launches[number]
        self._check(code, f"launching the Triton kernel {name}")

    def captures(self, stream):
        status, graph = ctypes.c_int(0), ctypes.c_void_p()
        self._check(self.acl.aclmdlRICaptureGetInfo(ctypes.c_void_p(stream), ctypes.byref(status),
                                                    ctypes.byref(graph)), "aclmdlRICaptureGetInfo")
        return status.value != 0

    def _run(self, number):
        name, run, keep = self.launches[number]
        if not keep:
            del self.launches[number]
        try:
            run()
        except BaseException:  # pylint: disable=broad-exception-caught
            print(f"acltape: the Triton kernel {name} failed:\n{traceback.format_exc()}", end="", file=sys.stderr,
                  flush=True)
            return 1
        return 0

    def _finish(self):
        if os.getpid() == self.process:
            self.acl.aclrtSynchronizeDevice()


_devices = []


def device():
    """The device of this process; a fork has its own."""
    if not _devices or _devices[-1].process != os.getpid():
        _devices.append(Device())
    return _devices[-1]
