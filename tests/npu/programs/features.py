"""Features of torch_npu that models use, a small program each. They know nothing of acltape.

    python3 features.py                 the names
    python3 features.py NAME            runs one
    python3 features.py --each [NAME..] runs each in a child of this process; prints JSON

Each compares what the NPU gives with what the CPU gives, or with what PyTorch documents, and prints
what it found; tensors by a hash of their bytes, so that one changed bit shows.
"""
import copy
import io
import os
import pickle
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
import torch_npu
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "torch", "features"))
from small_programs import PROGRAMS, main, program, show  # noqa: E402

NPU = torch.device("npu")


def close(found, wanted, tolerance=1e-5):
    """The NPU's tensor is the CPU's, but for rounding."""
    assert found.device.type == "npu", found.device
    torch.testing.assert_close(found.detach().cpu(), wanted.detach(), rtol=tolerance, atol=tolerance)
    show(found)


def mlp(device="cpu"):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)


def train(optimizer, device, steps=3, **options):
    """Losses and parameters of some steps of training with an optimiser."""
    model = mlp(device)
    optimizer = optimizer(model.parameters(), **options)
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        x = torch.randn(5, 8).to(device)

        def evaluate():
            with torch.enable_grad():
                optimizer.zero_grad()
                loss = model(x).square().mean()  # noqa: B023  (it is called at once)
                loss.backward()
                return loss

        losses.append(optimizer.step(evaluate).item())
    return losses, list(model.parameters())


def same_training(optimizer, tolerance=1e-4, **options):
    losses, parameters = train(optimizer, "npu", **options)
    wanted, references = train(optimizer, "cpu", **options)
    torch.testing.assert_close(losses, wanted, rtol=tolerance, atol=tolerance)
    for found, reference in zip(parameters, references):
        close(found, reference, tolerance)


# ---- memory ----


@program
def allocator_statistics():
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.memory_allocated()
    kept = torch.zeros(1 << 20, device=NPU)
    assert torch.npu.memory_allocated() - before >= 4 << 20
    del kept
    assert torch.npu.memory_allocated() == before
    assert torch.npu.max_memory_allocated() - before >= 4 << 20
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    assert "Allocated memory" in torch.npu.memory_summary()
    torch.npu.empty_cache()
    show(torch.npu.memory_stats()["num_alloc_retries"])


@program
def allocator_snapshot():
    torch.npu.memory._record_memory_history(max_entries=1000)
    kept = torch.ones(1000, device=NPU)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        torch.npu.memory._dump_snapshot(path)
        with open(path, "rb") as file:
            snapshot = pickle.load(file)
    torch.npu.memory._record_memory_history(enabled=None)
    active = [block for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated" and block["size"] >= 4000]
    show(len(active) > 0, sorted(snapshot)[:2], kept.sum().item())


@program
def memory_that_is_not_there():
    torch.npu.set_per_process_memory_fraction(0.001)
    try:
        torch.empty(1 << 34, dtype=torch.uint8, device=NPU)
    except torch.OutOfMemoryError as error:
        show("OutOfMemoryError", "out of memory" in str(error))
    torch.npu.set_per_process_memory_fraction(1.0)
    show(torch.ones(4, device=NPU).sum().item())


@program
def memory_of_a_stream():
    side = torch.npu.Stream()
    x = torch.arange(4096.0).npu()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        y = x + 1
    x.record_stream(side)
    del x
    z = torch.zeros(4096, device=NPU)
    torch.npu.current_stream().wait_stream(side)
    show(y.sum().item(), z.sum().item())


@program
def pinned_memory():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).pin_memory()
    there = x.to(NPU, non_blocking=True)
    back = torch.empty(3, 4, pin_memory=True)
    back.copy_(there, non_blocking=True)
    torch.npu.synchronize()
    assert back.is_pinned() and torch.equal(back, x)
    show(back)


@program
def storages():
    x = torch.arange(12.0).npu().view(3, 4)
    storage = x.untyped_storage()
    assert storage.nbytes() == 48 and storage.device.type == "npu"
    y = torch.empty(0, device=NPU)
    y.set_(storage, 1, (2, 3), (4, 1))
    y.fill_(-1)
    z = torch.empty(2, device=NPU).resize_(5).fill_(2)
    show(x, y, z)


# ---- autograd ----


@program
def gradcheck():
    def function(a, b):
        return (a @ b).sigmoid() * a.sin().sum(1, keepdim=True)

    torch.manual_seed(0)
    a = torch.randn(3, 4, dtype=torch.float64).npu().requires_grad_()
    b = torch.randn(4, 2, dtype=torch.float64).npu().requires_grad_()
    show(torch.autograd.gradcheck(function, (a, b)))


@program
def second_derivatives():
    def penalty(device):
        torch.manual_seed(0)
        x = torch.randn(4, 3).to(device).requires_grad_()
        grad, = torch.autograd.grad(x.exp().prod(1).sum(), x, create_graph=True)
        grad.square().sum().backward()
        return x.grad

    close(penalty("npu"), penalty("cpu"), 1e-4)


@program
def own_function_and_hooks():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 3 * x * x * grad

    def run(device):
        x = torch.arange(1.0, 5.0).to(device).requires_grad_()
        seen = []
        y = Cube.apply(x)
        y.register_hook(lambda grad: seen.append(grad.device.type) or grad * 2)
        y.sum().backward()
        return x.grad, seen

    found, seen = run("npu")
    assert seen == ["npu"]
    close(found, run("cpu")[0])


@program
def activation_checkpoints():
    from torch.utils.checkpoint import checkpoint

    def run(device, reentrant):
        model = mlp(device)
        torch.manual_seed(2)
        x = torch.randn(5, 8).to(device).requires_grad_()
        y = checkpoint(lambda v: F.dropout(model(v), 0.5), x, use_reentrant=reentrant)
        y.square().sum().backward()
        # The dropped elements are drawn again in the backward pass, and must be the same.
        dropped = y.detach() == 0
        expected = model(x.detach())[dropped]
        assert expected.numel() > 0
        return y, x.grad, [parameter.grad for parameter in model.parameters()]

    for reentrant in (False, True):
        y, grad, grads = run("npu", reentrant)
        again, grad_again, _ = run("npu", not reentrant)
        assert torch.equal(y, again) and torch.equal(grad, grad_again)
        show(y, grad, grads)


@program
def anomaly_mode():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.autograd.detect_anomaly():
                x = torch.tensor([-1.0]).npu().requires_grad_()
                (x.sqrt() * 0).sum().backward()
        except RuntimeError as error:
            show("nan values" in str(error), "SqrtBackward0" in str(error))


@program
def inference_and_functions_of_functions():
    def loss(weight, x):
        return torch.tanh(x @ weight).sum()

    torch.manual_seed(0)
    weight, x = torch.randn(3, 2), torch.randn(4, 3)
    wanted = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, x)
    close(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight.npu(), x.npu()), wanted)
    with torch.inference_mode():
        y = x.npu() * 2
    assert y.is_inference()
    show(y)


# ---- saving ----


@program
def checkpoint_files():
    model = mlp("npu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 8).npu()).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.npu.get_rng_state()}, file)
    for place in ("npu", "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=place, weights_only=True)
        assert {value.device.type for value in loaded["model"].values()} == {place}
        other = mlp(place)
        other.load_state_dict(loaded["model"])
        show(list(other.parameters()))
    other = torch.optim.AdamW(model.parameters(), lr=0.1)
    other.load_state_dict(loaded["optimizer"])
    assert {value["exp_avg"].device.type for value in other.state.values()} == {"npu"}


@program
def copies_and_pickles():
    x = torch.arange(6.0).npu().view(2, 3).t()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert other.device.type == "npu" and other.stride() == x.stride()
        show(other)


# ---- random numbers ----


@program
def random_numbers():
    torch.npu.manual_seed(3)
    state = torch.npu.get_rng_state()
    first = torch.rand(8, device=NPU)
    with torch.random.fork_rng(device_type="npu"):
        torch.rand(100, device=NPU)
    second = torch.randn(8, device=NPU)
    torch.npu.set_rng_state(state)
    assert torch.equal(first, torch.rand(8, device=NPU))
    assert torch.equal(second, torch.randn(8, device=NPU))
    generator = torch.Generator(device=NPU).manual_seed(5)
    one = torch.randint(100, (8,), device=NPU, generator=generator)
    generator.manual_seed(5)
    assert torch.equal(one, torch.randint(100, (8,), device=NPU, generator=generator))
    normal = torch.empty(10000, device=NPU).normal_(2, 3)
    assert abs(normal.mean().item() - 2) < 0.1 and abs(normal.std().item() - 3) < 0.1
    kept = F.dropout(torch.ones(10000, device=NPU), 0.25)
    assert abs((kept == 0).float().mean().item() - 0.25) < 0.02
    order = torch.randperm(50, device=NPU)
    assert torch.equal(order.sort().values.cpu(), torch.arange(50))
    chosen = torch.multinomial(torch.tensor([0.0, 1.0, 0.0]).npu(), 4, replacement=True)
    show(chosen, torch.bernoulli(torch.tensor([0.0, 1.0]).npu()))


# ---- what PyTorch does besides kernels ----


@program
def fall_back_to_the_cpu():
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.linalg.eigvals((x @ x.t()).npu())
    assert found.device.type == "npu"
    wanted = torch.linalg.eigvals(x @ x.t())
    torch.testing.assert_close(found.cpu().real.sort().values, wanted.real.sort().values, rtol=1e-4, atol=1e-4)
    show(found.shape)


@program
def dlpack():
    x = torch.arange(6, dtype=torch.float32).npu().view(2, 3)
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
    y.mul_(2)
    show(x)


@program
def comparisons():
    a = torch.tensor([1.0, float("nan"), 3.0]).npu()
    assert not torch.allclose(a, a) and torch.allclose(a, a, equal_nan=True)
    torch.testing.assert_close(a, a.clone(), equal_nan=True)
    show(torch.equal(a[::2], a[::2].clone()), torch.isclose(a, a + 1e-9))


@program
def indices():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    y = x.npu()
    mask = x > 0
    close(y[mask.npu()], x[mask])
    close(torch.nonzero(y > 0), torch.nonzero(mask))
    close(y[torch.tensor([4, 0]).npu(), :, None], x[[4, 0], :, None])
    close(y.unique(), x.unique())
    values, places = y.sort(dim=1, descending=True)
    close(values, x.sort(dim=1, descending=True).values)
    close(y.gather(1, places), values.cpu())
    close(y.topk(2).values, x.topk(2).values)
    x[mask], y[mask.npu()] = 0, 0
    close(y, x)
    x[[1, 1], [2, 3]] += 1
    y[torch.tensor([1, 1]).npu(), torch.tensor([2, 3]).npu()] += 1
    close(y, x)
    close(torch.where(y > 0, y, -y), x.abs())
    close(y.scatter_add(0, torch.zeros(1, 5, dtype=torch.long).npu(), y[:1]), x.scatter_add(
        0, torch.zeros(1, 5, dtype=torch.long), x[:1]))


@program
def shapes_that_are_odd():
    for shape in ((), (0,), (3, 0, 2), (1, 1, 1), (2, 3, 4, 5, 6)):
        torch.manual_seed(0)
        x = torch.randn(shape)
        y = x.npu()
        close(y * 2 + 1, x * 2 + 1)
        close(y.sum(), x.sum(), 1e-4)
        close(torch.cat([y.flatten(), y.flatten()]), torch.cat([x.flatten(), x.flatten()]))
    x = torch.arange(24.0).view(2, 3, 4)
    y = x.npu()
    close(y.permute(2, 0, 1)[::2, :, 1:].contiguous(), x.permute(2, 0, 1)[::2, :, 1:].contiguous())
    close(y[:, :1].expand(2, 5, 4) + y[:, :1], x[:, :1].expand(2, 5, 4) + x[:, :1])
    close(y.flip(1).roll(1, 2), x.flip(1).roll(1, 2))


@program
def element_types():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8,
                  torch.int16, torch.int32, torch.int64, torch.bool):
        x = torch.tensor([0, 1, 2, 3]).to(dtype)
        y = x.npu()
        assert y.dtype == dtype
        close(y.to(torch.float32) * 2, x.to(torch.float32) * 2)
        close((y == 1).sum(), (x == 1).sum())
    close(torch.tensor([1.5]).npu().half() * torch.tensor([2]).npu(), torch.tensor([3.0]).half())


@program
def complex_numbers():
    torch.manual_seed(0)
    real, imaginary = torch.randn(3, 4), torch.randn(3, 4)
    x = torch.complex(real, imaginary)
    y = torch.complex(real.npu(), imaginary.npu())
    close(y.abs(), x.abs())
    close(y * y, x * x)
    close(torch.polar(real.npu().abs(), imaginary.npu()), torch.polar(real.abs(), imaginary))
    close(torch.view_as_real(torch.fft.rfft(real.npu())), torch.view_as_real(torch.fft.rfft(real)))


@program
def autocast_in_bfloat16():
    def run(device):
        model = mlp(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = model(torch.linspace(-1, 1, 16).view(2, 8).to(device))
        assert y.dtype == torch.bfloat16
        y.float().sum().backward()
        return y, model[0].weight.grad

    found, wanted = run("npu"), run("cpu")
    close(found[0], wanted[0], 3e-2)
    close(found[1], wanted[1], 3e-2)


@program
def clipping_and_averages():
    def run(device):
        model = mlp(device)
        average = torch.optim.swa_utils.AveragedModel(model)
        model(torch.ones(2, 8).to(device)).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        average.update_parameters(model)
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        return norm, model[0].weight.grad, average.module[0].weight

    for found, wanted in zip(run("npu"), run("cpu")):
        close(found, wanted)


@program
def a_loader_with_workers():
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(32.0).view(16, 2), torch.arange(16))
    loader = DataLoader(data, batch_size=4, num_workers=2, pin_memory=True, pin_memory_device="npu")
    total = torch.zeros((), device=NPU)
    for x, y in loader:
        assert x.is_pinned()
        total += (x.npu(non_blocking=True).sum(1) * y.npu(non_blocking=True)).sum()
    show(total)


@program
def packed_sequences():
    def run(device):
        torch.manual_seed(0)
        layer = nn.LSTM(3, 4, batch_first=True).to(device)
        x = torch.randn(3, 5, 3).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
        assert lengths.tolist() == [5, 3, 2]
        return padded

    close(run("npu"), run("cpu"), 1e-4)


# ---- optimisers ----


@program
def optimizer_sgd():
    same_training(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True)


@program
def optimizer_adam():
    same_training(torch.optim.Adam, lr=0.01, amsgrad=True)


@program
def optimizer_adamw_foreach():
    same_training(torch.optim.AdamW, lr=0.01, foreach=True)


@program
def optimizer_adamw_one_by_one():
    same_training(torch.optim.AdamW, lr=0.01, foreach=False)


@program
def optimizer_adamw_fused():
    losses, parameters = train(torch_npu.optim.NpuFusedAdamW, "npu", lr=0.01)
    wanted, references = train(torch.optim.AdamW, "cpu", lr=0.01)
    torch.testing.assert_close(losses, wanted, rtol=1e-4, atol=1e-4)
    for found, reference in zip(parameters, references):
        close(found, reference, 1e-4)


@program
def optimizer_rmsprop():
    same_training(torch.optim.RMSprop, lr=0.01, centered=True, momentum=0.5)


@program
def optimizer_adagrad():
    same_training(torch.optim.Adagrad, lr=0.1)


@program
def optimizer_adadelta():
    same_training(torch.optim.Adadelta, lr=1.0)


@program
def optimizer_adamax_and_nadam():
    same_training(torch.optim.Adamax, lr=0.01)
    same_training(torch.optim.NAdam, lr=0.01)


@program
def optimizer_lbfgs():
    same_training(torch.optim.LBFGS, tolerance=1e-3, lr=0.1, max_iter=3)


# ---- streams ----


@program
def streams_and_events():
    fast = torch.npu.Stream(priority=-1)
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    x = torch.ones(1 << 16, device=NPU)
    fast.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(fast):
        begin.record()
        for _ in range(3):
            x = x * 2
        end.record()
    assert torch.npu.current_stream() != fast
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    torch.npu.current_stream().wait_event(end)
    show(x[-1].item(), fast.query())


@program
def devices():
    assert torch.npu.device_count() == 8 and torch.npu.current_device() == 0
    with torch.npu.device(0):
        x = torch.ones(2, device="npu")
    assert x.get_device() == 0 and x.is_npu and torch.accelerator.current_accelerator().type == "npu"
    show(torch.npu.get_device_name(), torch.npu.is_bf16_supported(), torch.npu.is_initialized())


# ---- graphs ----


@program
def graphed_callables():
    def run(device):
        model = mlp(device)
        step = model
        if device == "npu":
            step = torch.npu.make_graphed_callables(model, (torch.ones(5, 8, device=device),))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = step(torch.randn(5, 8).to(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, list(model.parameters())

    losses, parameters = run("npu")
    wanted, references = run("cpu")
    torch.testing.assert_close(losses, wanted, rtol=1e-4, atol=1e-4)
    for found, reference in zip(parameters, references):
        close(found, reference, 1e-4)


@program
def graphs_share_a_pool():
    x = torch.ones(64, device=NPU)
    pool = torch.npu.graph_pool_handle()
    graphs, results = [], []
    for factor in (2.0, 3.0):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            results.append((x * factor).cumsum(0)[-1:] if not results else results[-1] * factor)
        graphs.append(graph)
    for value in (1.0, 5.0):
        x.fill_(value)
        for graph in graphs:
            graph.replay()
        show([result.item() for result in results])
    graphs[0].reset()


@program
def graph_with_updated_arguments():
    torch.manual_seed(0)
    heads, width, longest = 2, 16, 12
    query = torch.randn(1, heads, 1, width).half().npu()
    key, value = (torch.randn(1, heads, longest, width).half().npu() for _ in range(2))

    def attention(length):
        return torch_npu.npu_fused_infer_attention_score(
            query, key, value, num_heads=heads, input_layout="BNSD", scale=width ** -0.5,
            actual_seq_lengths_kv=[length])[0]

    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        result = attention(4)
    for length in (4, 9, 12):
        graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [length]}])
        graph.replay()
        torch.npu.synchronize()
        wanted = attention(length)
        assert torch.equal(result, wanted), length
        scores = (query.float() @ key[:, :, :length].float().transpose(2, 3)) * width ** -0.5
        reference = scores.softmax(-1) @ value[:, :, :length].float()
        torch.testing.assert_close(result.float(), reference, rtol=1e-2, atol=1e-2)
        show(result)


@program
def graph_trees():
    model = mlp("npu")
    compiled = torch.compile(model, backend="npugraphs", dynamic=False)
    for rows in (2, 2, 2, 3, 3, 3, 2):
        torch.manual_seed(rows)
        x = torch.randn(rows, 8)
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            found = compiled(x.npu())
            close(found, mlp()(x))


@program
def graph_trees_backward():
    model = mlp("npu")
    compiled = torch.compile(model, backend="npugraphs")
    reference = mlp()
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(3, 8)
        model.zero_grad()
        reference.zero_grad()
        compiled(x.npu()).square().sum().backward()
        reference(x).square().sum().backward()
        close(model[0].weight.grad, reference[0].weight.grad)


@program
def compiled_with_sizes_that_change():
    model = mlp("npu")
    compiled = torch.compile(model, backend="npugraph_ex", dynamic=True)
    with torch.no_grad():
        for rows in (2, 5, 3, 2):
            x = torch.linspace(-1, 1, rows * 8).view(rows, 8)
            close(compiled(x.npu()), mlp()(x))


@program
def host_function_in_a_graph():
    seen = []
    x = torch.ones(4, device=NPU)
    stream = torch.npu.Stream()
    graph = torch.npu.NPUGraph()
    torch.npu._subscribe_report(stream)
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        x.mul_(2)
        torch.npu._launch_host_func(stream, lambda word: seen.append(word), "between")
        y = x + 1
    stream.synchronize()
    torch.npu._unsubscribe_report(stream)
    del graph
    show(seen, y)


def run(name):
    PROGRAMS[name]()
    torch.npu.synchronize()


if __name__ == "__main__":
    main(sys.argv[1:], run)
