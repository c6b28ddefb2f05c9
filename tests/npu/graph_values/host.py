"""Memory of the host beside copies, a raw call beside the adapter's queue, and updates of graphs."""
import ctypes
import threading

import torch
import torch_npu

from programs import captured


def staged():
    big, target = torch.randn(512, 512, device="npu"), torch.zeros(8, device="npu")
    stage, sums = torch.zeros(8).pin_memory(), []
    for step in range(4):
        busy = big @ big
        stage.fill_(float(step))
        target.copy_(stage, non_blocking=True)  # finds: LINT-45
        sums.append((target * 1.0).sum())
    torch.npu.synchronize()
    return len(sums), busy.shape


def staged_in_turn():
    big, target = torch.randn(512, 512, device="npu"), torch.zeros(8, device="npu")
    stages, sums = [torch.zeros(8).pin_memory() for _ in range(4)], []
    for step in range(4):
        busy = big @ big
        stages[step].fill_(float(step))
        target.copy_(stages[step], non_blocking=True)
        sums.append((target * 1.0).sum())
    torch.npu.synchronize()
    return len(sums), busy.shape


def staged_with_an_event():
    big, target = torch.randn(512, 512, device="npu"), torch.zeros(8, device="npu")
    stage, copied, sums = torch.zeros(8).pin_memory(), torch.npu.Event(), []
    for step in range(4):
        busy = big @ big
        if step > 0:
            copied.synchronize()
        stage.fill_(float(step))
        target.copy_(stage, non_blocking=True)
        copied.record()
        sums.append((target * 1.0).sum())
    torch.npu.synchronize()
    return len(sums), busy.shape


def raw_copy(wait):
    """A library that is called with the raw stream."""
    acl = ctypes.CDLL("libascendcl.so")
    acl.aclrtMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                     ctypes.c_void_p]
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    return lambda to, source: acl.aclrtMemcpyAsync(to.data_ptr(), 4 * source.numel(), source.data_ptr(),
                                                   4 * source.numel(), 3, stream)


def overtakes():
    x, out = torch.zeros(256, 256, device="npu"), torch.zeros(256, 256, device="npu")
    copy = raw_copy(False)
    torch.npu.synchronize()
    for _ in range(20):
        for _ in range(20):
            x.add_(1)  # finds: LINT-43
        assert copy(out, x) == 0
        torch.npu.synchronize()
    return out.shape


def waits_first():
    x, out = torch.zeros(256, 256, device="npu"), torch.zeros(256, 256, device="npu")
    copy = raw_copy(True)
    for _ in range(20):
        for _ in range(20):
            x.add_(1)
        torch.npu.synchronize()
        assert copy(out, x) == 0
        torch.npu.synchronize()
    return out[0, 0].item()


B, H, S, D = 2, 2, 16, 32


def attention(q, k, v, lengths):
    return torch_npu.npu_fused_infer_attention_score(q, k, v, num_heads=H, input_layout="BNSD", scale=D ** -0.5,
                                                     actual_seq_lengths_kv=lengths)[0]


def attend(q, k, v, lengths):
    results = torch_npu.npu_fused_infer_attention_score(  # finds: LINT-22
        q, k, v, num_heads=H, input_layout="BNSD", scale=D ** -0.5, actual_seq_lengths_kv=lengths)
    return results[0]


def tensors():
    k = torch.randn(B, H, S, D, device="npu", dtype=torch.float16)
    return torch.randn(B, H, 1, D, device="npu", dtype=torch.float16), k, torch.randn_like(k)


def kept_lengths():
    q, k, v = tensors()
    wanted = [attend(q, k, v, [n, n]).float().sum().item() for n in (4, 9, 12)]
    graph, out = captured(lambda: attend(q, k, v, [4, 4]))
    values = []
    for _ in (4, 9, 12):
        graph.replay()
        values.append(out.float().sum().item())
    return wanted, values


def updated_lengths():
    q, k, v = tensors()
    wanted = [attention(q, k, v, [n, n]).float().sum().item() for n in (4, 9, 12)]
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        out = attention(q, k, v, [4, 4])
    values = []
    for n in (4, 9, 12):
        def update(n=n):
            torch.npu.set_device(0)
            graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [n, n]}])
        thread = threading.Thread(target=update)
        thread.start()
        graph.replay()
        thread.join()
        values.append(out.float().sum().item())
    return wanted, values


if __name__ == "__main__":
    torch.manual_seed(0)
    for run in (staged, staged_in_turn, staged_with_an_event, overtakes, waits_first, kept_lengths, updated_lengths):
        print(run.__name__, run())
