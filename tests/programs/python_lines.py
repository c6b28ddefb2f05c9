"""Operators called from Python, by ctypes: in functions, in a second thread, and phase by phase in two
threads, as an adapter with a task queue does. Prints the results.
"""
import ctypes
import threading

acl = ctypes.CDLL("libascendcl.so")
opapi = ctypes.CDLL("libopapi.so")
meta = ctypes.CDLL("libnnopbase.so")
for function in (meta.aclCreateTensor, meta.aclCreateScalar):
    function.restype = ctypes.c_void_p

COUNT = 4
BYTES = 4 * COUNT


def check(code):
    if code != 0:
        raise RuntimeError(f"an ACL call returned {code}")


def tensor(address):
    sizes = (ctypes.c_int64 * 1)(COUNT)
    strides = (ctypes.c_int64 * 1)(1)
    return ctypes.c_void_p(meta.aclCreateTensor(sizes, ctypes.c_uint64(1), 0, strides, ctypes.c_int64(0),
                                                2, sizes, ctypes.c_uint64(1), address))


def prepare(address, factor):
    value = ctypes.c_float(factor)
    scalar = ctypes.c_void_p(meta.aclCreateScalar(ctypes.byref(value), 0))
    bytes_, executor = ctypes.c_uint64(), ctypes.c_void_p()
    check(opapi.aclnnInplaceMulsGetWorkspaceSize(tensor(address), scalar, ctypes.byref(bytes_),
                                                 ctypes.byref(executor)))  # line of prepare
    return executor


def launch(executor, stream):
    check(opapi.aclnnInplaceMuls(None, ctypes.c_uint64(0), executor, stream))


def in_thread(function, *arguments):
    def run():
        check(acl.aclrtSetDevice(0))
        function(*arguments)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def main():
    check(acl.aclInit(None))
    check(acl.aclrtSetDevice(0))
    stream, memory = ctypes.c_void_p(), ctypes.c_void_p()
    check(acl.aclrtCreateStream(ctypes.byref(stream)))
    check(acl.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(BYTES), 0))
    values = (ctypes.c_float * COUNT)(1, 2, 3, 4)
    size = ctypes.c_size_t(BYTES)
    check(acl.aclrtMemcpy(memory, size, values, size, 1))
    launch(prepare(memory, 2.0), stream)
    in_thread(launch, prepare(memory, 3.0), stream)
    in_thread(lambda: launch(prepare(memory, 0.5), stream))
    check(acl.aclrtSynchronizeStream(stream))
    check(acl.aclrtMemcpy(values, size, memory, size, 2))  # line of the copy back
    print(*values)
    check(acl.aclFinalize())


main()
