#!/usr/bin/env python3
"""Calls every operator that has a lowering rule, on several layouts and element types.

Recorded with --payload all and replayed, each result must equal PyTorch's bit for bit.
"""
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def floats(*shape):
    return torch.randn(*shape)


def binary():
    a, b = floats(3, 5), floats(3, 5)
    row, number = floats(5), torch.tensor(2.5)
    for other in (b, row, number, b.t().contiguous().t()):
        for op in (torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum,
                   torch.remainder, torch.fmod, torch.atan2):
            op(a, other)
        torch.floor_divide(a, other)
        torch.div(a, other, rounding_mode="trunc")
        torch.div(a, other, rounding_mode="floor")
        for op in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge):
            op(a, other)
    torch.add(a, b, alpha=0.5), torch.sub(a, b, alpha=3), torch.rsub(a, b, alpha=2)
    a + 1, a - 2.5, 3 - a, a * 0.1, a / 3, a // 2, a % 3, 1 / a, a ** 2, a ** 0.5, 2 ** a, a ** b
    a > 0.5, a < 1, a == 0, a != 0, a >= 0, a <= 0
    c = a.clone()
    c += b
    c -= 0.5
    c *= row
    c /= 3
    c *= 2
    c -= b
    c.add_(1).sub_(2).mul_(3).div_(4).div_(b, rounding_mode="floor").pow_(2)
    torch.addcmul(a, b, b, value=0.3), torch.addcdiv(a, b, b.abs() + 1, value=-0.1)
    c.addcmul_(a, b, value=2).addcdiv_(a, b.abs() + 1, value=0.5)
    torch.lerp(a, b, 0.3), torch.lerp(a, b, b), c.lerp_(a, 0.1), c.lerp_(a, b)
    torch.logaddexp(a, b)
    ints = torch.arange(12).view(3, 4)
    ints + 1, ints * 2, ints / 2, ints // 5, ints % 5, ints + 0.5, ints * ints, ints / ints.add(1)
    torch.tensor(3.0) * 0.1, torch.tensor(3) * 0.1, torch.tensor(3) + torch.tensor(2.5)
    half = a.half()
    half + half, half * 0.1, half * half, half / 3, half.float() - half
    double = a.double()
    double * 0.1, double + a, double / b


def unary():
    a = floats(4, 6)
    p = a.abs() + 0.1
    for x in (a, a.t(), a[::2, 1:4]):
        for op in (torch.neg, torch.abs, torch.sign, torch.exp, torch.exp2, torch.expm1, torch.sin,
                   torch.cos, torch.tan, torch.atan, torch.sinh, torch.cosh, torch.erf, torch.erfc,
                   torch.floor, torch.ceil, torch.round, torch.trunc, torch.square, torch.isfinite,
                   torch.isnan, torch.isinf, torch.logical_not, torch.sgn):
            op(x)
    for x in (p, p.t()):
        for op in (torch.reciprocal, torch.sqrt, torch.rsqrt, torch.log, torch.log2, torch.log1p):
            op(x)
    torch.erfinv(a.clamp(-0.9, 0.9)), torch.asin(a.clamp(-1, 1)), torch.acos(a.clamp(-1, 1))
    torch.round(a, decimals=2)
    torch.clamp(a, -1, 1), torch.clamp(a, min=0), torch.clamp(a, max=0.5)
    torch.clamp(a, torch.zeros(6), torch.ones(6))
    torch.clamp_min(a, 0.1), torch.clamp_max(a, 0.1)
    c = p.clone()
    c.neg_().abs_().sqrt_().rsqrt_().exp_().log_().sin_().cos_().reciprocal_().floor_().ceil_()
    c.round_().clamp_(0, 1).clamp_(min=0.1).clamp_(max=0.9).clamp_min_(0.2).clamp_max_(0.8)


def logic():
    a, b = floats(3, 4) > 0, floats(3, 4) > 0
    torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b)
    a & b, a | b, a ^ b, ~a
    c = a.clone()
    c.logical_and_(b).logical_or_(a).logical_not_()
    c &= b
    c |= a
    i = torch.arange(6)
    i & 3, i | 8, i ^ 5, ~i, i & i, i | i
    a.any(), a.all(), a.any(dim=0), a.all(dim=1, keepdim=True)


def reductions():
    for a in (floats(3, 4, 5), floats(3, 4, 5).transpose(0, 2), floats(6, 7)[1::2, ::3]):
        a.sum(), a.sum(0), a.sum((0, 1), keepdim=True), a.mean(), a.mean(-1), a.mean((0, 1))
        a.max(), a.min(), a.max(dim=1), a.min(dim=0, keepdim=True), a.amax(0), a.amin((0, 1))
        a.argmax(), a.argmax(dim=1), a.argmin(), a.argmin(dim=0, keepdim=True)
        a.prod(), a.prod(1), a.cumsum(0), a.cumsum(-1), a.cumprod(1), a.logsumexp(0)
        a.var(), a.var(0), a.std(1), torch.var_mean(a, 0), a.norm(), a.norm(dim=0)
        torch.linalg.vector_norm(a, 2, dim=0), a.norm(p=1, dim=1)
        a.topk(2, dim=1), a.sort(0), a.sort(1, descending=True), a.sort(stable=True, dim=0)
        a.median(), a.median(0), a.kthvalue(2, 1)
    torch.arange(10).sum(), (floats(4) > 0).sum(), torch.arange(10).float().half().sum()
    torch.arange(9).view(3, 3).trace(), floats(4, 4).trace()
    torch.arange(10).max(), torch.arange(10).cumsum(0)


def products():
    a, b, bias = floats(7, 11), floats(11, 5), floats(5)
    a @ b, a.t().contiguous().t() @ b, a @ b.t().contiguous().t()
    torch.addmm(bias, a, b), torch.addmm(floats(7, 5), a, b, beta=0.5, alpha=2)
    x, y = floats(3, 7, 11), floats(3, 11, 5)
    torch.bmm(x, y), torch.bmm(x, y.transpose(1, 2).contiguous().transpose(1, 2))
    torch.baddbmm(floats(3, 7, 5), x, y, beta=0.1, alpha=3), torch.addbmm(floats(7, 5), x, y)
    a @ floats(11), torch.addmv(floats(7), a, floats(11)), floats(11).dot(floats(11))
    torch.outer(floats(3), floats(4)), torch.linalg.cross(floats(2, 3), floats(2, 3))
    c = floats(7, 5)
    c.addmm_(a, b)
    d = floats(3, 7, 5)
    d.baddbmm_(x, y)
    a.double() @ b.double(), torch.arange(6).view(2, 3) @ torch.arange(6).view(3, 2)


def layers():
    image = floats(2, 3, 9, 9)
    weight, bias = floats(4, 3, 3, 3), floats(4)
    F.conv2d(image, weight, bias), F.conv2d(image, weight, None, stride=2, padding=1)
    F.conv2d(image, floats(3, 1, 3, 3), groups=3, dilation=2), F.conv1d(image[0], floats(2, 9, 3))
    F.conv_transpose2d(image, floats(3, 2, 3, 3), stride=2, padding=1, output_padding=1)
    F.conv3d(image[None], floats(3, 2, 1, 3, 3))
    F.max_pool2d(image, 3, 2, 1), F.max_pool2d(image, 2, ceil_mode=True)
    F.avg_pool2d(image, 3), F.avg_pool2d(image, 2, 1, 1, count_include_pad=False)
    F.adaptive_avg_pool2d(image, 1), F.adaptive_avg_pool2d(image, (4, 5))
    F.adaptive_max_pool2d(image, 3), F.pad(image, (1, 2, 0, 1), value=0.5)
    F.pad(image, (1, 1, 2, 2), mode="reflect"), F.pad(image[0], (1, 1), mode="reflect")
    F.interpolate(image, size=(5, 4)), F.unfold(image, 3)
    F.interpolate(image, size=(12, 7), mode="bilinear", align_corners=False)
    F.interpolate(image, size=(12, 7), mode="bilinear", align_corners=True)
    mean, var = torch.zeros(3), torch.ones(3)
    F.batch_norm(image, mean, var, floats(3), floats(3))
    F.batch_norm(image, mean, var, floats(3), floats(3), training=True)
    F.batch_norm(image, mean, var, training=True)
    F.layer_norm(image, (9,), floats(9), floats(9)), F.layer_norm(image, (9, 9))
    F.group_norm(floats(2, 4, 3, 3), 2, floats(4), floats(4))
    F.instance_norm(image)
    F.embedding(torch.tensor([[1, 2], [0, 3]]), floats(5, 6))


def activations():
    for a in (floats(4, 6), floats(6, 4).t()):
        for op in (F.relu, torch.tanh, torch.sigmoid, F.silu, F.gelu, F.leaky_relu, F.elu,
                   F.hardtanh, F.hardswish, F.hardsigmoid, F.softplus, F.mish, F.logsigmoid, F.glu,
                   F.selu, F.celu, F.softsign):
            op(a)
        F.gelu(a, approximate="tanh"), F.threshold(a, 0.1, 20), F.prelu(a, torch.tensor([0.25]))
        F.softmax(a, 0), F.softmax(a, -1), F.log_softmax(a, 1), F.relu6(a)
    c = floats(4, 4)
    F.relu_(c), torch.tanh_(c), torch.sigmoid_(c), F.silu(c, inplace=True)
    F.leaky_relu_(c), F.elu_(c), F.hardtanh_(c), F.hardswish(c, inplace=True)
    F.threshold_(c, 0.1, 2)


def gradients():
    def run(f, *tensors):
        leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
        f(*leaves).sum().backward()
    x = floats(4, 6)
    for op in (F.relu, torch.tanh, torch.sigmoid, F.silu, F.gelu, F.leaky_relu, F.elu, F.hardtanh,
               F.hardswish, F.hardsigmoid, F.softplus, F.mish, F.logsigmoid, F.glu, torch.exp,
               torch.sqrt, torch.log, torch.abs, torch.rsqrt, torch.sin):
        run(op, x.abs() + 0.1)
    run(lambda a: F.gelu(a, approximate="tanh"), x)
    run(lambda a: F.softmax(a, 1) * torch.arange(6.), x)
    run(lambda a: F.log_softmax(a, 1) * torch.arange(6.), x)
    run(lambda a, w, b: F.layer_norm(a, (6,), w, b) * torch.arange(6.), x, floats(6), floats(6))
    image = floats(2, 4, 6, 6)
    run(lambda a, w, b: F.conv2d(a, w, b, padding=1) * 0.3, image, floats(4, 4, 3, 3), floats(4))
    run(lambda a, w, b: F.batch_norm(a, torch.zeros(4), torch.ones(4), w, b, True) ** 2, image,
        floats(4), floats(4))
    run(lambda a, w, b: F.group_norm(a, 2, w, b) ** 2, image, floats(4), floats(4))
    run(lambda a: F.max_pool2d(a, 2) * 2, image), run(lambda a: F.avg_pool2d(a, 2) * 2, image)
    run(lambda a: F.adaptive_avg_pool2d(a, 3) * 2, image)
    labels = torch.tensor([0, 2, 5, 1])
    run(lambda a: F.cross_entropy(a, labels), x)
    run(lambda a: F.cross_entropy(a, labels, weight=torch.arange(1., 7.), reduction="sum"), x)
    run(lambda a: F.nll_loss(a, labels, reduction="none", ignore_index=2), x)
    run(lambda a: F.nll_loss(a.t()[None, :, :, None].contiguous(), labels.view(1, 4, 1)), x)
    run(lambda a: F.mse_loss(a, torch.ones(4, 6)), x)
    run(lambda a: F.smooth_l1_loss(a, torch.ones(4, 6)), x)
    run(lambda a: F.l1_loss(a, torch.ones(4, 6)), x)
    run(lambda a: F.binary_cross_entropy(torch.sigmoid(a), torch.ones(4, 6)), x)
    run(lambda a: F.binary_cross_entropy_with_logits(a, torch.ones(4, 6)), x)
    run(lambda a: F.kl_div(F.log_softmax(a, 1), F.softmax(floats(4, 6), 1), reduction="batchmean"), x)
    run(lambda w: F.embedding(labels, w, padding_idx=1) * 3, floats(6, 5))
    run(lambda a: a[:, 2] * 2, x), run(lambda a: a[1:3] * 2, x), run(lambda a: a[labels - 2] * 2, x)
    run(lambda a: a.index_select(0, torch.tensor([0, 0, 2])) * 2, x)
    run(lambda a: torch.where(a > 0, a, a * 2), x), run(lambda a: a.masked_fill(a > 0, 1), x)
    run(lambda a: a.gather(1, labels.view(4, 1)) * 2, x), run(lambda a: torch.cat([a, a * 2]), x)
    run(lambda a: torch.stack([a, a * 2], 1), x), run(lambda a: a.max(1)[0] * 2, x)
    run(lambda a: a.cumsum(1) * 2, x), run(lambda a: a.std(1) * 2, x), run(lambda a: a.norm(), x)
    run(lambda a: a.unsqueeze(0).expand(3, 4, 6) * 2, x), run(lambda a: F.dropout(a, 0.3), x)
    run(lambda a: a.topk(2)[0] * 2, x), run(lambda a: a.triu() * 2, x)


def data():
    a = floats(3, 4)
    torch.zeros(3), torch.ones(2, 2), torch.full((2,), 7.5), torch.zeros_like(a), torch.ones_like(a)
    torch.full_like(a, 3), a.new_zeros(2), a.new_ones(2), a.new_full((2,), 2.5)
    torch.arange(5), torch.arange(2, 9, 3), torch.arange(0, 1, 0.25), torch.linspace(0, 1, 7)
    torch.eye(3), torch.eye(2, 4), a.triu(), a.tril(1), a.clone().triu_(1), a.clone().tril_()
    a.clone(), a.t().contiguous(), a.t().clone(), a.double(), a.half(), a.int(), a.bool(), a.long()
    b = torch.empty(3, 4)
    b.copy_(a).fill_(2).zero_().fill_(torch.tensor(3.0))
    b[1].copy_(a[0]), b[:, 1].fill_(9), b.t().copy_(a.t())
    mask = a > 0
    a.masked_fill(mask, -1e4), a.masked_fill(mask, torch.tensor(2.0)), a.clone().masked_fill_(mask, 0)
    a.clone().masked_scatter_(mask, floats(12)), torch.where(mask, a, b), torch.where(mask, a, 0.0)
    i = torch.tensor([2, 0])
    a[i], a[:, i], a[i, i], a[mask], a[mask.any(1)], a[None, i], a[..., i]
    c = a.clone()
    c[i] = 1
    c[i, i] = floats(2)
    c[:, i] = floats(3, 2)
    c[mask] = 0.5
    c.index_put_((i,), floats(2, 4), accumulate=True)
    a.index_select(1, i), c.index_copy_(0, i, floats(2, 4)), a.index_copy(1, i, floats(3, 2))
    c.index_add_(0, i, floats(2, 4)), a.index_add(1, i, floats(3, 2), alpha=2)
    c.index_fill_(0, i, 3), a.index_fill(1, i, 3), a.take(i)
    index = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])
    a.gather(0, index), a.scatter(0, index, floats(2, 4)), a.scatter(0, index, 1.5)
    c.scatter_(0, index, floats(2, 4)), c.scatter_(0, index, 2), a.scatter_add(0, index, floats(2, 4))
    c.scatter_add_(0, index, floats(2, 4))
    torch.cat([a, a]), torch.cat([a, a.t().reshape(3, 4)], 1), torch.stack([a, a]), torch.stack([a, a], 2)
    a.repeat(2, 3), a.flip(0), a.flip(0, 1), a.roll(1, 0), a.roll(2), a.roll((1, 2), (0, 1))
    torch.bucketize(a, torch.linspace(-1, 1, 5)), a.repeat_interleave(2, 0)
    a.nonzero(), a.masked_select(mask), torch.unique(i)
    torch.cat([torch.empty(0), floats(3)])


for part in (binary, unary, logic, reductions, products, layers, activations, gradients, data):
    part()
print("done")
