"""Features of torch 2.x, a small program each. They know nothing of acltape.

    python3 programs.py                 the names
    python3 programs.py NAME            runs one and prints what it computes
    python3 programs.py --each [NAME..] runs each in a child of this process; prints JSON

A program prints values as they are and tensors by a hash of their bytes, so that one changed bit shows.
"""
import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

from small_programs import PROGRAMS, main, program, show


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


def train(model, optimizer, steps=3, shape=(5, 8)):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(shape)).square().mean()
        loss.backward()
        optimizer.step()
        show(loss)
    show(list(model.parameters()))


# ---- torch.compile ----


def compiled(backend, **options):
    model = mlp()
    fast = torch.compile(model, backend=backend, **options)
    train(fast, torch.optim.SGD(model.parameters(), 0.1))


@program
def compile_eager():
    compiled("eager")


@program
def compile_aot_eager():
    compiled("aot_eager")


@program
def compile_inductor():
    compiled("inductor")


@program
def compile_inductor_inference():
    model = torch.compile(mlp().eval())
    with torch.no_grad():
        show(model(torch.ones(3, 8)), model(torch.ones(3, 8) * 2))


@program
def compile_dynamic_shapes():
    fast = torch.compile(lambda x: (x * 2).softmax(-1).sum(0), backend="aot_eager", dynamic=True)
    for rows in (2, 3, 7, 1):
        show(fast(torch.arange(rows * 4.0).view(rows, 4)))


@program
def compile_graph_breaks():
    def function(x):
        y = x.sin()
        if y.sum().item() > 0:
            return y.cos()
        return y.exp()

    fast = torch.compile(function, backend="aot_eager")
    show(fast(torch.ones(4)), fast(-torch.ones(4)))


@program
def compile_custom_backend():
    def backend(graph, example):
        show("nodes", [node.op for node in graph.graph.nodes])
        return graph.forward

    show(torch.compile(lambda x: x.relu() + 1, backend=backend)(torch.randn(3)))


@program
def compile_threads():
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "2"
    show(torch.compile(lambda x: (x.sin() + x.cos()).sum())(torch.arange(100.0)))


@program
def compile_autograd_function():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = torch.arange(4.0, requires_grad=True)
    torch.compile(Scale.apply, backend="aot_eager")(x).sum().backward()
    show(x.grad)


@program
def compile_checkpoint():
    from torch.utils.checkpoint import checkpoint
    model = mlp()
    fast = torch.compile(lambda x: checkpoint(model, x, use_reentrant=False), backend="aot_eager")
    fast(torch.randn(3, 8)).sum().backward()
    show([p.grad for p in model.parameters()])


# ---- higher-order operators ----


@program
def cond_eager():
    for sign in (1.0, -1.0):
        x = torch.full((3,), sign, requires_grad=True)
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))
        y.sum().backward()
        show(y, x.grad)


@program
def cond_compiled():
    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))

    show(function(torch.ones(3)), function(-torch.ones(3)))


@program
def while_loop_eager():
    from torch._higher_order_ops.while_loop import while_loop
    show(*while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2),
                     (torch.tensor(0), torch.ones(3))))


@program
def while_loop_compiled():
    from torch._higher_order_ops.while_loop import while_loop
    function = torch.compile(
        lambda i, x: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x.sin()), (i, x)),
        backend="aot_eager")
    show(*function(torch.tensor(0), torch.ones(3)))


@program
def map_over_rows():
    from torch._higher_order_ops.map import map as map_rows
    x = torch.randn(4, 3, requires_grad=True)
    y = map_rows(lambda row, scale: row.sin() * scale, x, torch.tensor(2.0))
    y.sum().backward()
    show(y, x.grad)


@program
def scan_sums():
    from torch._higher_order_ops.scan import scan
    show(*scan(lambda carry, x: (carry + x, carry * 2), torch.zeros(3), torch.randn(5, 3)))


@program
def associative_scan_sums():
    from torch._higher_order_ops.associative_scan import associative_scan
    show(associative_scan(lambda x, y: x + y, torch.randn(5, 3), 0, combine_mode="generic"))


@program
def flex_attention_eager():
    from torch.nn.attention.flex_attention import flex_attention
    q, k, v = torch.randn(3, 1, 2, 16, 8).unbind(0)
    show(flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j)))


@program
def flex_attention_mask():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    q, k, v = torch.randn(3, 1, 2, 128, 16).unbind(0)
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, 128, 128, device="cpu")
    show(mask.to_dense(), flex_attention(q, k, v, block_mask=mask))


@program
def hints_wrapper_and_strict_mode():
    from torch._higher_order_ops.strict_mode import strict_mode
    show(strict_mode(lambda x: (x.sin(),), (torch.ones(3),)))


@program
def invoke_subgraph():
    from torch.compiler import nested_compile_region

    @nested_compile_region
    def block(x):
        return x.sin() * 2

    show(torch.compile(lambda x: block(block(x)), backend="aot_eager")(torch.ones(3)))


# ---- torch.func, autograd ----


@program
def func_vmap():
    weight = torch.randn(3, 4)
    show(torch.func.vmap(lambda x: weight @ x)(torch.randn(5, 4)),
         torch.func.vmap(torch.dot, in_dims=(0, None))(torch.randn(5, 4), torch.randn(4)))


@program
def func_vmap_randomness():
    show(torch.func.vmap(lambda x: x + torch.rand(2), randomness="different")(torch.zeros(3, 2)))


@program
def func_grad_and_vjp():
    show(torch.func.grad(lambda x: x.sin().sum())(torch.randn(3)))
    value, pull = torch.func.vjp(torch.tanh, torch.randn(3))
    show(value, pull(torch.ones(3)))


@program
def func_jacobian_and_hessian():
    x = torch.randn(3)
    show(torch.func.jacrev(torch.sin)(x), torch.func.jacfwd(torch.cos)(x),
         torch.func.hessian(lambda x: (x**3).sum())(x))


@program
def func_functional_call():
    model = mlp()
    state = dict(model.named_parameters())
    gradients = torch.func.vmap(
        torch.func.grad(lambda p, x: torch.func.functional_call(model, p, x).sum()),
        in_dims=(None, 0))(state, torch.randn(4, 8))
    show(gradients)


@program
def func_functionalize():
    def function(x):
        y = x.clone()
        y.view(-1).add_(1)
        return y

    show(torch.func.functionalize(function)(torch.ones(2, 2)))
    from torch.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(torch.func.functionalize(function))(torch.ones(2, 2))
    show([str(node.target) for node in graph.graph.nodes], graph(torch.ones(2, 2)))


@program
def checkpoint_both_ways():
    from torch.utils.checkpoint import checkpoint
    for reentrant in (False, True):
        model = mlp()
        x = torch.randn(3, 8, requires_grad=True)
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()
        show(x.grad)


@program
def autograd_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, grad):
            return 3 * ctx.saved_tensors[0] ** 2 * grad

    x = torch.randn(4, requires_grad=True)
    gradient, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    show(gradient, torch.autograd.gradcheck(Cube.apply, x.double().detach().requires_grad_()))


@program
def forward_mode():
    import torch.autograd.forward_ad as forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(3), torch.ones(3))
        show(forward_ad.unpack_dual(dual.sin()).tangent)


@program
def saved_tensor_hooks():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        x = torch.randn(3, requires_grad=True)
        y = x.sin() * x
    y.sum().backward()
    show(x.grad)
    with torch.autograd.graph.save_on_cpu():
        x = torch.randn(3, requires_grad=True)
        (x * x).sum().backward()
    show(x.grad)


@program
def gradient_hooks():
    model = mlp()
    model[0].weight.register_hook(lambda grad: grad * 2)
    model[0].bias.register_post_accumulate_grad_hook(lambda p: show("accumulated", p.grad))
    model[2].register_full_backward_hook(lambda module, given, got: show("backward", given[0]))
    model[1].register_forward_hook(lambda module, x, y: y + 1)
    model(torch.randn(2, 8)).sum().backward()
    show(model[0].weight.grad)


@program
def multithreaded_backward():
    import threading
    model = mlp()

    def work():
        model(torch.ones(2, 8)).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
        thread.join()
    show([p.grad for p in model.parameters()])


@program
def inference_mode():
    with torch.inference_mode():
        x = mlp()(torch.randn(3, 8))
        show(x, x.is_inference(), x[0].add_(1))


@program
def anomaly_and_error():
    with torch.autograd.set_detect_anomaly(True):
        x = torch.zeros(1, requires_grad=True)
        try:
            (x.sqrt() * 0).backward()
        except RuntimeError as error:
            show("caught", str(error)[:60])
    try:
        torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError as error:
        show("caught", error)


# ---- modes, subclasses, custom operators ----


@program
def custom_op():
    @torch.library.custom_op("acltape_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(lambda x: torch.empty_like(x))
    twice.register_autograd(lambda ctx, grad: grad * 2)
    x = torch.randn(3, requires_grad=True)
    twice(x).sum().backward()
    show(x.grad, torch.compile(lambda x: twice(x) + 1, backend="aot_eager")(torch.ones(3)))
    show(torch.library.opcheck(twice, (torch.randn(3),)))


@program
def custom_op_in_place():
    @torch.library.custom_op("acltape_test::bump", mutates_args={"x"})
    def bump(x: torch.Tensor, by: float) -> None:
        x.add_(by)

    x = torch.zeros(3)
    bump(x, 2.0)
    show(x)

    @torch.compile(backend="aot_eager")
    def function(x):
        bump(x, 1.0)
        return x * 2

    show(function(x), x)


@program
def library_fragments():
    library = torch.library.Library("acltape_more", "DEF")
    library.define("plus(Tensor a, Tensor b) -> Tensor")
    library.impl("plus", lambda a, b: a + b, "CompositeImplicitAutograd")
    library.define("minus(Tensor a, Tensor b) -> Tensor")
    library.impl("minus", lambda a, b: a - b, "CPU")
    show(torch.ops.acltape_more.plus(torch.ones(2), torch.ones(2)),
         torch.ops.acltape_more.minus(torch.ones(2), torch.ones(2)))


@program
def dispatch_mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            show(function)
            return function(*args, **(kwargs or {}))

    with Log():
        x = torch.randn(3, requires_grad=True)
        F.linear(x, torch.ones(2, 3)).sum().backward()


@program
def function_mode():
    from torch.overrides import TorchFunctionMode

    class Log(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            show(getattr(function, "__name__", function))
            return function(*args, **(kwargs or {}))

    with Log():
        torch.ones(3).add(1).sum()


@program
def fake_tensor_mode():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() as mode:
        model = mlp()
        y = model(torch.empty(5, 8))
        show(type(y).__name__, y.shape, y.device)
    show(mode.from_tensor(torch.ones(3)).sum().shape)


@program
def meta_device():
    with torch.device("meta"):
        model = mlp()
    y = model(torch.empty(5, 8, device="meta"))
    show(y.shape, y.device, y.is_meta)
    model.to_empty(device="cpu")
    show(sum(p.numel() for p in model.parameters()))


@program
def tensor_subclass():
    class Tagged(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            inner = torch.utils._pytree.tree_map(
                lambda x: x.inner if isinstance(x, Tagged) else x, (args, kwargs or {}))
            return torch.utils._pytree.tree_map(
                lambda x: Tagged(x) if isinstance(x, torch.Tensor) else x,
                function(*inner[0], **inner[1]))

    show((Tagged(torch.ones(3)) + 1).sum().inner)


@program
def function_subclass():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            show(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    show(torch.ones(3).as_subclass(Loud).add(1).as_subclass(torch.Tensor))


@program
def flop_counter():
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        mlp()(torch.randn(3, 8)).sum().backward()
    show(counter.get_total_flops())


@program
def make_fx_symbolic():
    from torch.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(lambda x: F.softmax(x @ x.t(), -1), tracing_mode="symbolic")(torch.randn(3, 4))
    show([str(node.target) for node in graph.graph.nodes], graph(torch.ones(2, 4)))


# ---- precision, optimisers ----


@program
def autocast():
    model = mlp()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(torch.randn(3, 8))
    y.float().sum().backward()
    show(y, model[0].weight.grad)


@program
def grad_scaler():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(torch.randn(3, 8)).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        show(loss, scaler.get_scale())


def optimised(kind, **options):
    model = mlp()
    train(model, kind(model.parameters(), 0.01, **options))


@program
def optimizers_fused():
    for kind in (torch.optim.AdamW, torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad):
        optimised(kind, fused=True)


@program
def optimizers_foreach():
    for kind in (torch.optim.AdamW, torch.optim.SGD, torch.optim.NAdam, torch.optim.RMSprop):
        optimised(kind, foreach=True)


@program
def optimizers_muon_and_lbfgs():
    model = nn.Linear(4, 4, bias=False)
    train(model, torch.optim.Muon(model.parameters(), 0.01), shape=(2, 4))
    x = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (x - 2).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    show(x)


@program
def foreach_operators():
    tensors = [torch.randn(3), torch.randn(2, 2)]
    show(torch._foreach_add(tensors, 1), torch._foreach_mul(tensors, tensors),
         torch._foreach_norm(tensors), nn.utils.clip_grad_norm_(
             [nn.Parameter(t) for t in tensors], 1.0))


@program
def schedulers_and_averages():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(2, 8)).sum().backward()
        optimizer.step()
        schedule.step()
        average.update_parameters(model)
    show(list(average.parameters()), schedule.get_last_lr())


@program
def deterministic_mode():
    torch.use_deterministic_algorithms(True)
    x = torch.zeros(4)
    x.index_add_(0, torch.tensor([1, 1, 2]), torch.ones(3))
    show(x, torch.empty(3), torch.are_deterministic_algorithms_enabled())


@program
def random_state():
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    show(first, torch.rand(3), torch.randn(2, generator=torch.Generator().manual_seed(5)),
         F.dropout(torch.ones(8)), torch.randperm(6), torch.multinomial(torch.ones(4), 2))


# ---- attention and layers ----


@program
def attention_variants():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = (x.clone().requires_grad_() for x in torch.randn(3, 2, 2, 8, 16).unbind(0))
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            show(y, torch.autograd.grad(y.sum(), (q, k, v)))
    mask = torch.zeros(8, 8).masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf"))
    show(F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
         F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True))


@program
def transformer_layers():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    x = torch.randn(2, 5, 16)
    layer(x).sum().backward()
    show(layer.linear1.weight.grad)
    layer.eval()
    with torch.no_grad():
        show(layer(x), nn.TransformerEncoder(layer, 2)(x))


@program
def recurrent_layers():
    x = torch.randn(5, 2, 8)
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        layer = kind(8, 6, num_layers=2, bidirectional=True)
        y, _ = layer(x)
        y.sum().backward()
        show(y, layer.weight_ih_l0.grad)
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    show(nn.LSTM(8, 4)(packed)[0].data)


@program
def embedding_bag():
    bag = nn.EmbeddingBag(10, 4, mode="sum")
    bag(torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2])).sum().backward()
    show(bag.weight.grad)
    sparse = nn.EmbeddingBag(10, 4, sparse=True)
    sparse(torch.tensor([[1, 2], [3, 1]])).sum().backward()
    show(sparse.weight.grad.to_dense())


@program
def norms_and_convolutions():
    x = torch.randn(2, 4, 6, 6)
    for layer in (nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.RMSNorm(6),
                  nn.Conv2d(4, 2, 3), nn.ConvTranspose2d(4, 2, 3), nn.MaxPool2d(2)):
        y = layer(x.clone().requires_grad_())
        y.sum().backward()
        show(y)


@program
def grouped_mm():
    a = torch.randn(6, 16, dtype=torch.bfloat16)
    b = torch.randn(2, 16, 8, dtype=torch.bfloat16)
    show(F.grouped_mm(a, b, offs=torch.tensor([2, 6], dtype=torch.int32)))


@program
def parametrizations():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    layer(torch.randn(2, 4)).sum().backward()
    show(layer.parametrizations.weight.original0.grad)
    show(nn.utils.parametrizations.orthogonal(nn.Linear(3, 3)).weight,
         nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).weight)


# ---- kinds of tensors ----


@program
def nested_jagged():
    x = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=torch.jagged,
                                   requires_grad=True)
    y = (x * 2).sin()
    torch.cat([part.flatten() for part in y.unbind()]).sum().backward()
    show(x.grad.values(), torch.nested.to_padded_tensor(y, 0.0))


@program
def nested_strided():
    import warnings
    warnings.simplefilter("ignore")
    x = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
    show(torch.nested.to_padded_tensor(F.relu(x), -1.0))


@program
def quantised_dynamic():
    import warnings
    warnings.simplefilter("ignore")
    model = torch.ao.quantization.quantize_dynamic(mlp(), {nn.Linear}, torch.qint8)
    show(model(torch.randn(3, 8)))


@program
def quantised_tensors():
    import warnings
    warnings.simplefilter("ignore")
    x = torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 10, torch.quint8)
    show(x.int_repr(), x.dequantize(), x.q_scale())
    y = torch.quantize_per_channel(torch.randn(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)
    show(y.dequantize(), torch.fake_quantize_per_tensor_affine(torch.randn(4), 0.1, 0, -128, 127))


@program
def sparse_coo():
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).coalesce()
    show(x.values(), (x @ torch.ones(3, 2)), (x + x).to_dense(), torch.sparse.sum(x))


@program
def sparse_csr():
    import warnings
    warnings.simplefilter("ignore")
    x = torch.eye(4).to_sparse_csr()
    show(x.crow_indices(), x @ torch.randn(4, 2), x.to_dense(), x.to_sparse_csc().values())


@program
def complex_numbers():
    x = torch.randn(4, dtype=torch.complex64, requires_grad=True)
    y = (x * x.conj() + x.exp()).abs()
    y.sum().backward()
    show(y, x.grad, torch.view_as_real(x), x.conj().imag)


@program
def fourier():
    x = torch.randn(4, 8, requires_grad=True)
    torch.fft.rfft2(x).abs().sum().backward()
    show(x.grad, torch.fft.ifft(torch.fft.fft(torch.randn(8))),
         torch.stft(torch.randn(64), 16, window=torch.hann_window(16), return_complex=True))


@program
def linear_algebra():
    x = torch.randn(4, 4, dtype=torch.float64)
    show(torch.linalg.svdvals(x), torch.linalg.solve(x, torch.ones(4, dtype=torch.float64)),
         torch.linalg.qr(x)[1].abs(), torch.linalg.det(x), torch.linalg.eigvalsh(x + x.T),
         torch.linalg.inv(x), torch.linalg.matrix_exp(x * 0.1), torch.einsum("ij,jk->ik", x, x))


@program
def named_tensors():
    import warnings
    warnings.simplefilter("ignore")
    x = torch.ones(2, 3).refine_names("rows", "columns")
    show(x.names, x.sum("rows").names, x.sum("columns").rename(None))


@program
def narrow_types():
    x = torch.randn(4, 4)
    show(x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float(),
         x.bfloat16() @ x.bfloat16(), torch.arange(4).to(torch.uint16).to(torch.int32),
         x.half().sum())


@program
def masked_tensors():
    import warnings
    warnings.simplefilter("ignore")
    from torch.masked import masked_tensor
    show(masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True])).sum().get_data())


# ---- programs as data ----


@program
def export_and_run():
    exported = torch.export.export(mlp(), (torch.ones(2, 8),))
    show(exported.module()(torch.ones(2, 8)), len(list(exported.graph.nodes)))
    rows = torch.export.Dim("rows")
    exported = torch.export.export(mlp(), (torch.ones(2, 8),), dynamic_shapes=({0: rows},))
    show(exported.run_decompositions().module()(torch.ones(5, 8)))
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(exported, folder + "/x.pt2")
        show(torch.export.load(folder + "/x.pt2").module()(torch.ones(3, 8)))


@program
def jit_script():
    import warnings
    warnings.simplefilter("ignore")

    show(torch.jit.script(mlp())(torch.ones(2, 8)))
    compiled_unit = torch.jit.CompilationUnit(
        "def f(x):\n  y = x\n  for i in range(3):\n    y = y + x\n  return y\n")
    for _ in range(4):
        show(compiled_unit.f(torch.ones(3)))


@program
def jit_trace():
    import warnings
    warnings.simplefilter("ignore")
    traced = torch.jit.trace(mlp(), torch.ones(2, 8))
    with tempfile.TemporaryDirectory() as folder:
        traced.save(folder + "/x.pt")
        loaded = torch.jit.load(folder + "/x.pt")
    for _ in range(3):
        show(loaded(torch.ones(2, 8)))
    show(torch.jit.freeze(traced.eval())(torch.ones(1, 8)))


@program
def fx_trace():
    graph = torch.fx.symbolic_trace(mlp())
    show(graph.code, graph(torch.ones(2, 8)))


@program
def save_and_load():
    import copy
    import pickle
    model = mlp()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), folder + "/x.pt")
        show(torch.load(folder + "/x.pt", weights_only=True),
             torch.load(folder + "/x.pt", mmap=True))
        show(torch.from_file(folder + "/x.bin", shared=True, size=4).fill_(3))
        show(os.path.getsize(folder + "/x.bin"))
    show(copy.deepcopy(model)(torch.ones(1, 8)), pickle.loads(pickle.dumps(torch.arange(3))))


@program
def dlpack_and_numpy():
    import numpy
    x = torch.arange(4.0)
    y = torch.from_dlpack(x)
    y[0] = 7
    array = x.numpy()
    array[1] = 9
    show(x, numpy.from_dlpack(x).sum(), torch.from_numpy(numpy.arange(3)) + 1,
         torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8), torch.as_tensor(array))


# ---- processes and threads ----


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((2,), float(i)) ** 2


@program
def loader_fork():
    for batch in torch.utils.data.DataLoader(Squares(), 4, num_workers=2):
        show(batch)


@program
def loader_spawn():
    loader = torch.utils.data.DataLoader(Squares(), 4, num_workers=1,
                                         multiprocessing_context="spawn")
    for batch in loader:
        show(batch)


@program
def loader_persistent_shuffled():
    loader = torch.utils.data.DataLoader(Squares(), 4, shuffle=True, num_workers=2,
                                         persistent_workers=True)
    for _ in range(2):
        show([batch for batch in loader])


def _double(tensor):
    tensor.mul_(2)


@program
def shared_tensors():
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    tensor = torch.ones(3).share_memory_()
    process = context.Process(target=_double, args=(tensor,))
    process.start()
    process.join()
    show(tensor, process.exitcode)


@program
def forked_child():
    x = torch.ones(3)
    child = os.fork()
    if child == 0:
        show("child", x.add_(1).sum())
        os._exit(7)
    show(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x)


@program
def distributed_gloo():
    import torch.distributed as dist
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=0, world_size=1)
        x = torch.ones(3)
        dist.all_reduce(x)
        gathered = [torch.zeros(3)]
        dist.all_gather(gathered, x)
        model = nn.parallel.DistributedDataParallel(mlp())
        model(torch.ones(2, 8)).sum().backward()
        show(x, gathered, model.module[0].weight.grad)
        dist.destroy_process_group()


@program
def signal_handlers():
    import signal
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(torch.ones(3).sum().item()))
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGUSR1)
        torch.randn(10, 10) @ torch.randn(10, 10)
    show(seen)


@program
def exit_code():
    show(torch.ones(2).sum())
    sys.exit(5)


@program
def uncaught_error():
    torch.ones(2).view(3)


# ---- instruments ----


@program
def profiler_with_shapes():
    from torch.profiler import ProfilerActivity, profile
    # Not with stacks: names of Python functions do not always decode in 2.13, recorded or not.
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 profile_memory=True) as profiler:
        with torch.profiler.record_function("mine"):
            mlp()(torch.randn(3, 8)).sum().backward()
    # Names and counts; the times differ from run to run.
    events = profiler.key_averages()
    show(sorted(event.key for event in events), sum(event.count for event in events))


@program
def execution_trace_observer():
    from torch.profiler import ExecutionTraceObserver
    with tempfile.TemporaryDirectory() as folder:
        observer = ExecutionTraceObserver().register_callback(folder + "/trace.json")
        observer.start()
        mlp()(torch.randn(3, 8))
        observer.stop()
        observer.unregister_callback()
        with open(folder + "/trace.json", encoding="utf-8") as file:
            show([node["name"] for node in json.load(file)["nodes"]])


@program
def tracing_python():
    lines = []
    sys.settrace(lambda frame, event, argument: lines.append(frame.f_code.co_name))
    torch.ones(3).add(1)
    mlp()(torch.ones(1, 8))
    sys.settrace(None)
    show(lines)


@program
def memory_by_gc():
    import gc
    import weakref
    x = torch.ones(3)
    reference = weakref.ref(x)
    storage = x.untyped_storage()
    show(storage.nbytes(), storage._use_count() if hasattr(storage, "_use_count") else 0,
         x.data_ptr() == storage.data_ptr(), x.is_shared())
    del x
    gc.collect()
    show(reference())


@program
def storage_tricks():
    x = torch.arange(6.0)
    storage = x.untyped_storage()
    storage.resize_(48)
    y = torch.empty(0).set_(storage, 0, (12,))
    y[6:] = 1
    show(y, storage.nbytes(), torch.as_strided(x, (2, 2), (1, 1)))
    x.data = torch.ones(2)
    show(x)
    y = torch.ones(2)
    y.resize_(4).fill_(2)
    show(y)


@program
def printing():
    print(torch.arange(20.0).view(4, 5) / 3, torch.randn(2, requires_grad=True))
    print(torch.tensor([1, 2]), torch.tensor([True]), torch.empty(0), mlp())


@program
def threads_of_kernels():
    show(torch.get_num_threads() > 0)
    torch.set_num_threads(1)
    show(torch.randn(100, 100).sum())
    torch.set_num_threads(2)
    show((torch.randn(300, 300) @ torch.randn(300, 300)).sum())


def run(name):
    torch.manual_seed(0)
    PROGRAMS[name]()


if __name__ == "__main__":
    if "--each" in sys.argv:
        # Half of the programs import these. Once for all children, because it takes 1 to 2 s each.
        import torch._dynamo  # pylint: disable=unused-import
        import torch._refs  # pylint: disable=unused-import
    main(sys.argv[1:], run)
