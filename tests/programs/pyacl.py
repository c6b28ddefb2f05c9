"""A program on pyACL alone: memory, copies, streams, events, threads, callbacks, and a graph that it captures.

pyACL has no functions for captured graphs, so those are called by ctypes, with pyACL's handles.
It checks its own results and prints "fine".
"""

import ctypes
import threading

import acl
from acl.rt import memcpy

TO_DEVICE, TO_HOST, WITHIN_DEVICE = 1, 2, 3
SIZE = 4096


def check(ret, call):
    if ret != 0:
        raise SystemExit(f"{call}: {ret}, {acl.get_recent_err_msg()}")


def taken(answer, call):
    *values, ret = answer
    check(ret, call)
    return values[0] if len(values) == 1 else values


def content(device, size):
    host = taken(acl.rt.malloc_host(size), "malloc_host")
    check(memcpy(host, size, device, size, TO_HOST), "memcpy to the host")
    data = acl.util.ptr_to_bytes(host, size)
    check(acl.rt.free_host(host), "free_host")
    return data


def copies(stream):
    """Host to device, within the device on a stream, back to the host."""
    data = bytes(range(256)) * (SIZE // 256)
    first = taken(acl.rt.malloc(SIZE, 0), "malloc")
    second = taken(acl.rt.malloc(SIZE, 0), "malloc")
    check(memcpy(first, SIZE, acl.util.bytes_to_ptr(data), SIZE, TO_DEVICE), "memcpy to the device")
    check(acl.rt.memcpy_async(second, SIZE, first, SIZE, WITHIN_DEVICE, stream), "memcpy_async")
    check(acl.rt.synchronize_stream(stream), "synchronize_stream")
    assert content(second, SIZE) == data
    check(acl.rt.memset(second, SIZE, 7, SIZE), "memset")
    assert content(second, SIZE) == bytes([7]) * SIZE
    return first, second


def order(first, second, stream):
    """An event orders two streams."""
    other = taken(acl.rt.create_stream(), "create_stream")
    event = taken(acl.rt.create_event(), "create_event")
    check(acl.rt.memset_async(first, SIZE, 1, SIZE, stream), "memset_async")
    check(acl.rt.record_event(event, stream), "record_event")
    check(acl.rt.stream_wait_event(other, event), "stream_wait_event")
    check(acl.rt.memcpy_async(second, SIZE, first, SIZE, WITHIN_DEVICE, other), "memcpy_async")
    check(acl.rt.synchronize_stream(other), "synchronize_stream")
    assert taken(acl.rt.query_event_status(event), "query_event_status") == 1
    assert content(second, SIZE) == bytes([1]) * SIZE
    check(acl.rt.destroy_event(event), "destroy_event")
    check(acl.rt.destroy_stream(other), "destroy_stream")


def graph(first, second, stream):
    """A copy that is captured once and executed after its input has changed."""
    library = ctypes.CDLL("libascendcl.so")
    model, on = ctypes.c_void_p(), ctypes.c_void_p(stream)
    check(library.aclmdlRICaptureBegin(on, 0), "aclmdlRICaptureBegin")
    check(acl.rt.memcpy_async(second, SIZE, first, SIZE, WITHIN_DEVICE, stream), "captured memcpy_async")
    check(library.aclmdlRICaptureEnd(on, ctypes.byref(model)), "aclmdlRICaptureEnd")
    for value in (3, 4):
        check(acl.rt.memset(first, SIZE, value, SIZE), "memset")
        check(library.aclmdlRIExecuteAsync(model, on), "aclmdlRIExecuteAsync")
        check(acl.rt.synchronize_stream(stream), "synchronize_stream")
        assert content(second, SIZE) == bytes([value]) * SIZE
    check(library.aclmdlRIDestroy(model), "aclmdlRIDestroy")


def threads(context):
    """Each thread has a stream and memory of its own; all are on one context."""
    wrong = []

    def work(value):
        check(acl.rt.set_context(context), "set_context")
        stream = taken(acl.rt.create_stream(), "create_stream")
        memory = taken(acl.rt.malloc(SIZE, 0), "malloc")
        for _ in range(50):
            check(acl.rt.memset_async(memory, SIZE, value, SIZE, stream), "memset_async")
            check(acl.rt.synchronize_stream(stream), "synchronize_stream")
            if content(memory, SIZE) != bytes([value]) * SIZE:
                wrong.append(value)
        check(acl.rt.free(memory), "free")
        check(acl.rt.destroy_stream(stream), "destroy_stream")

    workers = [threading.Thread(target=work, args=(value,)) for value in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, wrong


def callbacks(context, stream):
    """A callback on the stream runs in the thread that subscribed to its reports."""
    seen, ends = [], threading.Event()

    def reports(arguments):
        check(acl.rt.set_context(arguments[0]), "set_context")
        while not ends.is_set():
            acl.rt.process_report(100)

    def called(values):
        seen.append((values, threading.get_ident()))

    thread = taken(acl.util.start_thread(reports, [context]), "start_thread")
    check(acl.rt.subscribe_report(thread, stream), "subscribe_report")
    check(acl.rt.launch_callback(called, ["a", 1], 1, stream), "launch_callback")
    check(acl.rt.synchronize_stream(stream), "synchronize_stream")
    check(acl.rt.unsubscribe_report(thread, stream), "unsubscribe_report")
    ends.set()
    check(acl.util.stop_thread(thread), "stop_thread")
    assert seen == [(["a", 1], thread)], seen


def refused(first):
    """What the interface refuses comes back as a code, with the reason; values come first all the same."""
    assert memcpy(first, 8, first, 16, WITHIN_DEVICE) == 107000
    assert "16 bytes do not fit into the 8" in acl.get_recent_err_msg()
    assert acl.rt.malloc(0, 0)[1] != 0
    assert acl.rt.set_device(1000) != 0
    assert acl.rt.destroy_stream(12345) != 0


def main():
    check(acl.init(), "init")
    check(acl.rt.set_device(0), "set_device")
    context = taken(acl.rt.create_context(0), "create_context")
    stream = taken(acl.rt.create_stream(), "create_stream")
    free, total = taken(acl.rt.get_mem_info(1), "get_mem_info")
    assert 0 < free <= total
    first, second = copies(stream)
    order(first, second, stream)
    graph(first, second, stream)
    threads(context)
    callbacks(context, stream)
    refused(first)
    for memory in (first, second):
        check(acl.rt.free(memory), "free")
    check(acl.rt.destroy_stream(stream), "destroy_stream")
    check(acl.rt.destroy_context(context), "destroy_context")
    check(acl.rt.reset_device(0), "reset_device")
    check(acl.finalize(), "finalize")
    print("fine")


main()
