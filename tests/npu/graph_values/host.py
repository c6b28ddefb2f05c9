"""Memory of the host beside copies, raw calls beside the adapter's queue, other streams, and updates of graphs."""
import ctypes
import threading

import torch
import torch_npu

from programs import by_time, captured, main, rounds


def busy():
    """Work that keeps the device busy for a while."""
    big = torch.ones(512, 512, device="npu")
    for _ in range(4):
        big = big @ big / 512
    return big


@by_time
def fault_staged():
    """a pinned buffer is filled again before its copy ran"""
    target, stage, sums = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory(), []
    for step in range(4):
        busy()
        stage.fill_(float(step))
        target.copy_(stage, non_blocking=True)  # finds: LINT-45
        sums.append(target.sum())
    return torch.stack(sums).tolist()


def right_staged():
    target, stages, sums = torch.zeros(8, device="npu"), [torch.zeros(8).pin_memory() for _ in range(4)], []
    for step in range(4):
        busy()
        stages[step].fill_(float(step))
        target.copy_(stages[step], non_blocking=True)
        sums.append(target.sum())
    return torch.stack(sums).tolist()


def right_staged_with_an_event():
    target, stage, sums = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory(), []
    copied = torch.npu.Event()
    for step in range(4):
        busy()
        if step > 0:
            copied.synchronize()
        stage.fill_(float(step))
        target.copy_(stage, non_blocking=True)
        copied.record()
        sums.append(target.sum())
    return torch.stack(sums).tolist()


@by_time
def fault_staged_by_numpy():
    """NumPy changes pinned memory before its copy ran"""
    target, stage, sums = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory(), []
    numbers = stage.numpy()
    for step in range(4):
        busy()
        numbers[:] = step
        target.copy_(stage, non_blocking=True)  # finds: LINT-45
        sums.append(target.sum())
    return torch.stack(sums).tolist()


def right_staged_by_numpy():
    target, stage, sums = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory(), []
    numbers = stage.numpy()
    for step in range(4):
        busy()
        torch.npu.current_stream().synchronize()
        numbers[:] = step
        target.copy_(stage, non_blocking=True)
        sums.append(target.sum())
    return torch.stack(sums).tolist()


@by_time
def fault_input_staged():
    """an input of a graph comes from pinned memory that is filled again too soon"""
    x, stage = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory()
    graph, y = captured(lambda: x + 1)

    def feed(i):
        busy()
        stage.fill_(float(i))
        x.copy_(stage, non_blocking=True)  # finds: LINT-45

    return rounds(graph, y, 3, feed)


def right_input_staged():
    x, stage = torch.zeros(8, device="npu"), torch.zeros(8).pin_memory()
    graph, y = captured(lambda: x + 1)

    def feed(i):
        busy()
        torch.npu.synchronize()
        stage.fill_(float(i))
        x.copy_(stage, non_blocking=True)

    return rounds(graph, y, 3, feed)


@by_time
def fault_read_early():
    """a result in pinned memory is read before its copy has ended"""
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * (busy()[0, 0] + 2))
    on_host = torch.zeros(8).pin_memory()
    graph.replay()
    on_host.copy_(y, non_blocking=True)  # finds: LINT-45
    return on_host.sum().tolist()


def right_read_early():
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * (busy()[0, 0] + 2))
    on_host = torch.zeros(8).pin_memory()
    graph.replay()
    on_host.copy_(y, non_blocking=True)
    torch.npu.current_stream().synchronize()
    return on_host.sum().tolist()


@by_time
def fault_to_host_read_early():
    """`.to("cpu", non_blocking=True)` is read at once"""
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * (busy()[0, 0] + 2))
    graph.replay()
    on_host = y.to("cpu", non_blocking=True)  # finds: LINT-45
    return on_host.sum().tolist()


def right_to_host_read_early():
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * (busy()[0, 0] + 2))
    graph.replay()
    on_host = y.to("cpu", non_blocking=True)
    torch.npu.synchronize()
    return on_host.sum().tolist()


@by_time
def fault_other_stream():
    """an input is copied on another stream, for which nothing waits"""
    x, fresh = torch.zeros(8, device="npu"), [torch.full((8,), float(i), device="npu") for i in range(3)]
    graph, y = captured(lambda: x + 1)
    side = torch.npu.Stream()
    side.wait_stream(torch.npu.current_stream())
    kept = []
    for i in range(3):
        with torch.npu.stream(side):
            busy()
            x.copy_(fresh[i])  # finds: LINT-19
        graph.replay()  # finds: LINT-19
        kept.append(y.clone())
    return torch.stack(kept).tolist()


def right_other_stream():
    x, fresh = torch.zeros(8, device="npu"), [torch.full((8,), float(i), device="npu") for i in range(3)]
    graph, y = captured(lambda: x + 1)
    side = torch.npu.Stream()

    def feed(i):
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            busy()
            x.copy_(fresh[i])
        torch.npu.current_stream().wait_stream(side)

    return rounds(graph, y, 3, feed)


@by_time
def fault_result_on_other_stream():
    """a result is read on another stream, which does not wait for the execution"""
    x = torch.zeros(8, device="npu")
    graph, y = captured(lambda: x + busy()[0, 0])
    side, kept = torch.npu.Stream(), []
    side.wait_stream(torch.npu.current_stream())
    for i in range(3):
        x.fill_(float(i))
        graph.replay()  # finds: LINT-19
        with torch.npu.stream(side):
            kept.append(y.sum())  # finds: LINT-19
    torch.npu.synchronize()
    return torch.stack(kept).tolist()


def right_result_on_other_stream():
    x = torch.zeros(8, device="npu")
    graph, y = captured(lambda: x + busy()[0, 0])
    side, kept = torch.npu.Stream(), []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            kept.append(y.sum())
        torch.npu.current_stream().wait_stream(side)
    torch.npu.synchronize()
    return torch.stack(kept).tolist()


def raw_copy():
    """A library that is called with the raw stream."""
    acl = ctypes.CDLL("libascendcl.so")
    acl.aclrtMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                     ctypes.c_void_p]
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    return lambda to, source: acl.aclrtMemcpyAsync(to.data_ptr(), 4 * source.numel(), source.data_ptr(),
                                                   4 * source.numel(), 3, stream)


@by_time
def fault_overtakes():
    """a raw call overtakes launches that wait in the adapter's queue"""
    x, out = torch.zeros(256, 256, device="npu"), torch.zeros(256, 256, device="npu")
    copy = raw_copy()
    torch.npu.synchronize()
    for _ in range(20):
        for _ in range(20):
            x.add_(1)  # finds: LINT-43
        assert copy(out, x) == 0
        torch.npu.synchronize()
    return out[0, 0].item()


def right_overtakes():
    x, out = torch.zeros(256, 256, device="npu"), torch.zeros(256, 256, device="npu")
    copy = raw_copy()
    for _ in range(20):
        for _ in range(20):
            x.add_(1)
        torch.npu.synchronize()
        assert copy(out, x) == 0
        torch.npu.synchronize()
    return out[0, 0].item()


HEADS, LENGTH, WIDTH = 2, 16, 32


def tensors():
    k = torch.randn(2, HEADS, LENGTH, WIDTH, device="npu", dtype=torch.float16)
    return torch.randn(2, HEADS, 1, WIDTH, device="npu", dtype=torch.float16), k, torch.randn_like(k)


def fault_lengths():
    """attention takes its lengths as a list of the host"""
    q, k, v = tensors()

    def attend(lengths):
        return torch_npu.npu_fused_infer_attention_score(  # finds: LINT-22
            q, k, v, num_heads=HEADS, input_layout="BNSD", scale=WIDTH ** -0.5, actual_seq_lengths_kv=lengths)[0]

    for n in (4, 9, 12):
        attend([n, n])
    graph, out = captured(lambda: attend([4, 4]))
    return rounds(graph, out.view(-1), 3)


def right_lengths():
    q, k, v = tensors()

    def attend(lengths):
        return torch_npu.npu_fused_infer_attention_score(
            q, k, v, num_heads=HEADS, input_layout="BNSD", scale=WIDTH ** -0.5, actual_seq_lengths_kv=lengths)[0]

    for n in (4, 9, 12):
        attend([n, n])
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        out = attend([4, 4])
    kept = []
    for n in (4, 9, 12):
        def update(n=n):
            torch.npu.set_device(0)
            graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [n, n]}])
        thread = threading.Thread(target=update)
        thread.start()
        graph.replay()
        thread.join()
        kept.append(out.view(-1).tolist())
    return kept


def right_branch_of_captures():
    """attention is launched in a task group where a capture is active, and by itself elsewhere"""
    q, k, v = tensors()
    options = dict(num_heads=HEADS, input_layout="BNSD", scale=WIDTH ** -0.5)
    space = torch_npu._npu_fused_infer_attention_score_get_max_workspace(
        q, k, v, actual_seq_lengths_kv=[LENGTH] * 2, **options)
    updating, updated, groups = torch.npu.Stream(), torch.npu.ExternalEvent(), []

    def attend(lengths):
        query = q * 2
        if torch.npu.is_current_stream_capturing():
            stream = torch.npu.current_stream()
            updated.wait(stream)
            updated.reset(stream)
            out, sums = torch.empty_like(query), torch.empty(1, device="npu", dtype=torch.float16)

            def launch(lengths):
                torch_npu.npu_fused_infer_attention_score.out(
                    query, k, v, actual_seq_lengths_kv=lengths, workspace=space, out=[out, sums], **options)

            torch.npu.graph_task_group_begin(stream)
            launch(lengths)
            groups.append((torch.npu.graph_task_group_end(stream), launch))
        else:
            out = torch_npu.npu_fused_infer_attention_score(query, k, v, actual_seq_lengths_kv=lengths, **options)[0]
        return out + 1

    for n in (4, 9):
        attend([n, n])
    graph, out = captured(lambda: attend([4, 4]))
    group, launch = groups[0]
    kept = []
    for n in (4, 9, 12):
        with torch.npu.stream(updating):
            torch.npu.graph_task_update_begin(updating, group)
            launch([n, n])
            torch.npu.graph_task_update_end(updating)
            updated.record(updating)
        graph.replay()
        torch.npu.synchronize()
        kept.append(out.view(-1).clone())
    return torch.stack(kept).tolist()


@by_time
def fault_replayed_elsewhere():
    """a graph is executed on another stream than its result is read on"""
    x, side = torch.zeros(8, device="npu"), torch.npu.Stream()
    big = torch.ones(512, 512, device="npu")
    graph, y = captured(lambda: x + (big @ big)[0, 0])
    kept = []
    for i in range(3):
        x.fill_(float(i))
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            graph.replay()
        kept.append(y.sum())  # finds: LINT-19
    torch.npu.synchronize()
    return torch.stack(kept).tolist()


def right_replayed_elsewhere():
    x, side = torch.zeros(8, device="npu"), torch.npu.Stream()
    big = torch.ones(512, 512, device="npu")
    graph, y = captured(lambda: x + (big @ big)[0, 0])
    kept = []
    for i in range(3):
        x.fill_(float(i))
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            graph.replay()
        torch.npu.current_stream().wait_stream(side)
        kept.append(y.sum())
    torch.npu.synchronize()
    return torch.stack(kept).tolist()


if __name__ == "__main__":
    main()
