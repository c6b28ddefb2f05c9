"""Layers, losses and tensor operators, a small use of each: on the NPU results and gradients are those of
the CPU. Each use runs in a child of this process, so that one that stops the device does not hinder others.

    python3 layers.py [--here] [USE..]     all, or these; here: in this process, without those of BY_NAME

Prints each use that differs or fails, with the reason, and in the end "equal" when there was none.
"""
import os
import sys
import warnings

import torch
import torch.nn.functional as F  # noqa: F401  (uses name it)
import torch_npu  # noqa: F401
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "torch", "features"))
from small_programs import run_in_child  # noqa: E402

# The adapter calls these by their names, which no leaf sees.
BY_NAME = ("LSTM", "GRU")
TOLERANCE = 2e-3  # erf is computed as tanh in the adapter's gelu, which several layers have

SHAPES = {
    "line": (2, 3, 10), "image": (2, 3, 8, 8), "volume": (1, 2, 4, 6, 6), "channels": (2, 4, 6, 6),
    "sequence": (2, 5, 8), "rows": (3, 8), "columns": (2, 27, 36), "matrix": (4, 6), "square": (4, 4),
}

# Layers by the kind of the input. The expressions are members of torch.nn.
LAYERS = {
    "sequence": """ReLU() ReLU6() ELU() SELU() CELU() GELU() SiLU() Mish() Hardswish() Hardsigmoid() Hardtanh()
        LeakyReLU() LogSigmoid() Sigmoid() Softplus() Softshrink() Hardshrink() Tanh() Tanhshrink()
        Threshold(0.1,0.0) Softsign() PReLU() GLU() Softmax(-1) LogSoftmax(-1) Softmin(-1) LayerNorm(8)
        LayerNorm((5,8)) RMSNorm(8) Linear(8,4) LSTM(8,6,2,batch_first=True) GRU(8,6,batch_first=True)
        RNN(8,6,batch_first=True) LSTM(8,6,bidirectional=True) TransformerEncoderLayer(8,2,16,0.0,batch_first=True)
        TransformerEncoderLayer(8,2,16,0.0,batch_first=True).eval()""",
    "rows": "LSTMCell(8,6) GRUCell(8,6) RNNCell(8,6)",
    "line": """Conv1d(3,4,3,padding=1) Conv1d(3,6,3,groups=3) Conv1d(3,4,3,dilation=2,stride=2,padding=2)
        ConvTranspose1d(3,4,3,stride=2,output_padding=1) MaxPool1d(2) AvgPool1d(2) AdaptiveAvgPool1d(3)
        AdaptiveMaxPool1d(3) BatchNorm1d(3) InstanceNorm1d(3) ReflectionPad1d(2) ReplicationPad1d(2)
        ConstantPad1d(2,1.5) CircularPad1d(2) ZeroPad1d(2)""",
    "image": """Conv2d(3,4,3,padding=1) Conv2d(3,6,3,groups=3) Conv2d(3,4,3,dilation=2,stride=2,padding=2)
        Conv2d(3,4,3,padding="same") Conv2d(3,4,3,padding=1,padding_mode="reflect")
        Conv2d(3,4,3,padding=1,padding_mode="circular") ConvTranspose2d(3,4,3,stride=2,output_padding=1)
        MaxPool2d(3,2,1) MaxPool2d(3,2,ceil_mode=True) AvgPool2d(3,2,1,count_include_pad=False)
        AdaptiveAvgPool2d((3,2)) AdaptiveMaxPool2d(3) Softmax2d() BatchNorm2d(3) BatchNorm2d(3).eval()
        InstanceNorm2d(3,affine=True) LocalResponseNorm(2) ReflectionPad2d(2) ReplicationPad2d(2) ZeroPad2d(2)
        CircularPad2d(2) Flatten() Unfold(3)""",
    "channels": "GroupNorm(2,4) PixelShuffle(2) PixelUnshuffle(2) ChannelShuffle(2)",
    "columns": "Fold((8,8),3)",
    "volume": """Conv3d(2,4,3,padding=1) Conv3d(2,4,3,groups=2) ConvTranspose3d(2,4,3,stride=2,output_padding=1)
        MaxPool3d(2) AvgPool3d(2) AdaptiveAvgPool3d(2) AdaptiveMaxPool3d(2) BatchNorm3d(2) ReflectionPad3d(1)
        ReplicationPad3d(1)""",
}

# Functions by the kind of the input x.
FUNCTIONS = {
    "image": [f"F.interpolate(x, {size}, mode='{mode}')"
              for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")
              for size in ("scale_factor=2.0", "size=(5, 11)")] + [
        "F.interpolate(x, size=(5, 11), mode='bilinear', align_corners=True)",
        "F.interpolate(x, size=(5, 4), mode='bilinear', antialias=True)",
        "F.lp_pool2d(x.abs(), 2, 2)",
        "F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)"],
    "line": ["F.interpolate(x, scale_factor=2.0)", "F.interpolate(x, scale_factor=2.0, mode='linear')"],
    "volume": ["F.interpolate(x, scale_factor=2.0)", "F.interpolate(x, scale_factor=2.0, mode='trilinear')"],
    "channels": ["F.scaled_dot_product_attention(x, x * 0.5, x)",
                 "F.scaled_dot_product_attention(x, x, x, is_causal=True)",
                 "F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True)"],
    "sequence": ["F.normalize(x)", "F.cosine_similarity(x[0], x[1])", "F.pairwise_distance(x[0], x[1])",
                 "nn.functional.one_hot((x > 0).long(), 3)", "F.affine_grid(x[:, :2, :3], (2, 3, 4, 4), False)",
                 "torch.cdist(x, x.flip(0) + 1)",
                 "torch.cdist(x[0], x[1], p=1.0)", "F.pdist(x[0])"],
    "matrix": [f"torch.{name}(x)" for name in
               """abs neg exp expm1 sin cos tan atan sinh cosh tanh asinh erf erfc sigmoid floor ceil round trunc
               frac sign reciprocal square exp2 sgn signbit isnan isfinite isinf nan_to_num deg2rad sinc i0
               sum mean prod std var amax amin argmax argmin norm median nanmedian nansum nanmean
               unique_consecutive count_nonzero std_mean var_mean tril triu diag diag_embed cov corrcoef
               argwhere trapezoid cumulative_trapezoid""".split()] + [
               f"torch.{name}(x.sigmoid())" for name in
               "sqrt rsqrt log log1p asin acos logit digamma lgamma erfinv log2 log10".split()] + [
               f"torch.{name}(x.abs() + 0.5, x[0].abs() + 0.5)" for name in
               """add sub mul div pow atan2 fmod remainder maximum minimum fmax fmin hypot logaddexp copysign eq ne
               lt le gt ge logical_and logical_or logical_xor heaviside nextafter floor_divide""".split()] + [
               f"x.{use}" for use in
               """logsumexp(1) cumsum(1) cumprod(1) cummax(1) cummin(1) logcumsumexp(1) mode(1) quantile(0.3,1)
               aminmax(dim=1) kthvalue(2) topk(2) sort(1)[0] argsort(1) histc(5) renorm(2,0,1.0) diff() roll(1,0)
               flip(1) rot90() tile(2,2) unfold(1,3,2) repeat_interleave(2,0) clamp(-0.5,0.5) masked_fill(x>0,1.0)
               masked_scatter(x>0,x) masked_select(x>0) nonzero() half().sum() var(0,unbiased=False)
               swapaxes(0,1)+1 narrow(1,2,3)*2 chunk(3,1)[1]*2 to_sparse().to_dense() take_along_dim(x.argsort(1),1)
               index_put((at(0,1),),x[0]) gather(1,at(0,0).view(2,1)) index_select(0,at(2,0))
               index_add(0,at(2,2),x[:2]) index_fill(0,at(2),1.0) index_copy(0,at(2),x[:1]) put(at(1,2),x[0,:2])
               take(at(1,7)) scatter(1,at(0,0).view(2,1),1.0) scatter_reduce(1,at(0,0).view(2,1),x,"amax")
               """.split()] + [
               "(x > 0).all(1)", "(x > 0).any(1)", "~(x > 0)", "(x > 0).int() << 2", "torch.where(x > 0, x, -x)",
               "torch.lerp(x, x + 1, 0.3)", "torch.addcmul(x, x, x)", "torch.addcdiv(x, x, x.abs() + 1)",
               "torch.stack([x, x], 1)", "torch.hstack([x, x])", "torch.cat(x.split(2, 1)[::-1], 1)",
               "torch.searchsorted(x.sort(1)[0], x)", "torch.bucketize(x, x[0].sort()[0])", "torch.isin(x, x[0])",
               "torch.bincount((x.flatten() > 0).int())", "(x > 0).int().unique()", "torch.vander(x[0])",
               "torch.meshgrid(x[0], x[1], indexing='ij')", "torch.cartesian_prod(x[0], x[1])",
               "torch.combinations(x[0])", "torch.block_diag(x, x)", "torch.gradient(x)[0]", "torch.dist(x, x + 1)",
               "torch.linspace(0, 1, 6, device=x.device) + x", "torch.logspace(0, 1, 5, device=x.device)",
               "torch.arange(0, 5, 0.5, device=x.device)", "torch.eye(3, 4, device=x.device)",
               "torch.full((2,), 3, device=x.device)", "torch.tril_indices(3, 3, device=x.device)",
               "torch.view_as_real(torch.fft.rfft(x))", "torch.fft.ifft(torch.fft.fft(x)).real",
               "torch.view_as_real(torch.fft.fft2(x))", "torch.view_as_complex(x.view(4, 3, 2)).abs()",
               "torch.nanmean(x, out=x.new_empty(()))", "torch.max(x, -x, out=torch.empty_like(x))",
               "torch.min(x, -x, out=torch.empty_like(x))", "x.detach().fill_diagonal_(2.0)",
               "x.bfloat16() @ x.bfloat16().t()", "F.hardswish(x.clone(), inplace=True)", "torch.xlogy(x, x.abs() + 1)",
               "torch.mvlgamma(x.abs() + 2, 2)", "x[None].movedim(0, 2) * 1",
               "torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged).sin().values()"],
    "square": [f"torch.linalg.{use}" for use in
               """det(p) slogdet(p) inv(p) cholesky(p) qr(x)[1].abs() svdvals(x) eigvalsh(p) matrix_norm(x)
               vector_norm(x) pinv(p) matrix_exp(x*0.1) solve(p,x) solve_triangular(p.tril(),x,upper=False)
               lstsq(p,x)[0] matrix_power(x,3) cross(x[:3,:3],x[1:,:3]) multi_dot([x,x,x])
               householder_product(x,x[0])""".split()] + [
               "torch.trace(x)", "torch.slogdet(x @ x.t() + torch.eye(4, device=x.device))", "torch.kron(x, x)",
               "torch.einsum('ij,jk->ik', x, x)", "torch.tensordot(x, x, 2)",
               "torch.outer(x[0], x[1])", "torch.baddbmm(x[None], x[None], x[None])", "torch.addmv(x[0], x, x[1])",
               "torch.addr(x, x[0], x[1])", "torch.addbmm(x, x[None], x[None])"],
}

# (layer, kinds of its inputs)
SEVERAL = [
    ("nn.Bilinear(8, 8, 3)", "sequence sequence"), ("nn.MultiheadAttention(8, 2, batch_first=True)", "sequence " * 3),
    ("nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)", "sequence sequence"),
    ("nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True)", "sequence sequence"),
    ("nn.Embedding(10, 4, padding_idx=1)", "classes"), ("nn.EmbeddingBag(10, 4)", "classes"),
    ("nn.EmbeddingBag(10, 4, mode='max')", "classes"), ("nn.MSELoss()", "sequence sequence"),
    ("nn.L1Loss()", "sequence sequence"), ("nn.SmoothL1Loss()", "sequence sequence"),
    ("nn.HuberLoss()", "sequence sequence"), ("nn.BCELoss()", "shares choices"),
    ("nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))", "sequence choices"),
    ("nn.CrossEntropyLoss(label_smoothing=0.1)", "rows class"), ("nn.CrossEntropyLoss()", "rows shares_of_rows"),
    ("nn.CrossEntropyLoss(weight=torch.arange(1.0, 9.0), ignore_index=3)", "rows class"),
    ("nn.NLLLoss()", "rows class"), ("nn.KLDivLoss(reduction='batchmean')", "sequence shares"),
    ("nn.PoissonNLLLoss()", "sequence shares"), ("nn.GaussianNLLLoss()", "sequence sequence shares"),
    ("nn.CosineEmbeddingLoss()", "rows rows signs"), ("nn.TripletMarginLoss()", "rows rows rows"),
    ("nn.MultiMarginLoss()", "rows class"), ("nn.SoftMarginLoss()", "rows signs_of_rows"),
    ("nn.HingeEmbeddingLoss()", "rows signs_of_rows"), ("nn.MultiLabelSoftMarginLoss()", "rows choices_of_rows"),
    ("nn.MultiLabelMarginLoss()", "rows classes_of_rows"),
    ("lambda x, y: nn.CTCLoss()(x.log_softmax(-1), y[:, :3] + 1, (3, 3), (3, 2))", "steps classes"),
]


def inputs_of(kind):
    """Fixed inputs, those that a gradient is asked of as floats."""
    random = torch.Generator().manual_seed(7)
    if kind in SHAPES:
        return torch.randn(SHAPES[kind], generator=random)
    return {
        "steps": lambda: torch.randn(3, 2, 5, generator=random),
        "classes": lambda: torch.randint(4, (2, 3), generator=random),
        "class": lambda: torch.randint(8, (3,), generator=random),
        "classes_of_rows": lambda: torch.tensor([[3, 0, -1, 1, 0, 0, 0, 0]] * 3),
        "shares": lambda: torch.rand(2, 5, 8, generator=random) * 0.9 + 0.05,
        "shares_of_rows": lambda: torch.rand(3, 8, generator=random).softmax(-1),
        "choices": lambda: torch.randint(2, (2, 5, 8), generator=random).double(),
        "choices_of_rows": lambda: torch.randint(2, (3, 8), generator=random).double(),
        "signs": lambda: torch.tensor([1, -1, 1]),
        "signs_of_rows": lambda: torch.randint(2, (3, 8), generator=random) * 2 - 1,
    }[kind]()


def uses():
    """Name of each use: a function that makes what is called, and the kinds of its inputs."""
    table = {}
    for kind, layers in LAYERS.items():
        for layer in layers.split():
            table[f"nn.{layer} of {kind}"] = (lambda layer=layer: eval("nn." + layer), [kind])
    for kind, expressions in FUNCTIONS.items():
        for text in expressions:
            table[f"{text} of {kind}"] = (lambda text=text: lambda x: expression(text, x), [kind])
    for layer, kinds in SEVERAL:
        table[f"{layer} of {kinds.strip()}"] = (lambda layer=layer: eval(layer), kinds.split())
    return table


def expression(text, x):
    def at(*places):
        return torch.tensor(places, device=x.device)

    p = x @ x.t() + 4 * torch.eye(len(x), device=x.device) if "(p" in text else None
    return eval(text, {**globals(), "x": x, "p": p, "at": at})


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, (tuple, list)) else []


def compute(use, device, with_gradients):
    make, kinds = use
    torch.manual_seed(1)
    called = make()
    if isinstance(called, nn.Module):
        called = called.to(device)
    inputs = []
    for kind in kinds:
        value = inputs_of(kind)
        # Targets in double stand for choices, of which no gradient is asked.
        value = value.float() if value.dtype == torch.float64 else value.requires_grad_(
            with_gradients and value.is_floating_point())
        inputs.append(value.detach().to(device).requires_grad_(value.requires_grad))
    results = tensors(called(*inputs))
    found = [result.detach().cpu() for result in results]
    first = results[0]
    if with_gradients and first.requires_grad and first.is_floating_point():
        weights = torch.linspace(0.5, 1.5, max(1, first.numel())).view(first.shape).to(device)
        (first * weights).sum().backward()
        leaves = inputs + (list(called.parameters()) if isinstance(called, nn.Module) else [])
        found += [leaf.grad.cpu() for leaf in leaves if leaf.grad is not None]
    return found


def compare(use):
    with_gradients = True
    try:
        wanted = compute(use, "cpu", True)
    except (RuntimeError, NotImplementedError):
        with_gradients = False  # some have none
        wanted = compute(use, "cpu", False)
    found = compute(use, "npu", with_gradients)
    torch.npu.synchronize()
    assert len(found) == len(wanted), f"{len(found)} results and gradients instead of {len(wanted)}"
    for ours, reference in zip(found, wanted):
        torch.testing.assert_close(ours, reference, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True,
                                   check_stride=False)


def run_here(name, run):
    try:
        run(name)
        return {"code": 0}
    except Exception as error:  # pylint: disable=broad-except
        return {"code": 1, "output": f"{type(error).__name__} {error}"}


def main(arguments):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    here = arguments[:1] == ["--here"]
    names = arguments[1:] if here else arguments
    table = uses()
    if here:
        table = {name: use for name, use in table.items() if not any(word in name for word in BY_NAME)}
    failed = 0
    for name in names or table:
        result = (run_here if here else run_in_child)(name, lambda name: compare(table[name]))
        if result["code"] != 0:
            failed += 1
            print(f"{name}\n    {result['output'][:600]}", flush=True)
    print(len(names or table), "uses")
    print("equal" if failed == 0 else f"{failed} differ or fail")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main(sys.argv[1:])
