"""The adapter's own functions that call operators by name, beside formulas on the CPU. Prints "equal" in the end."""
import math

import torch
import torch.nn.functional as F
import torch_npu

random = torch.Generator().manual_seed(5)


def of(*shape):
    return torch.randn(shape, generator=random)


def boxes(count):
    first = torch.rand((count, 2), generator=random)
    return torch.cat([first, first + 0.1 + torch.rand((count, 2), generator=random)], 1)


def areas(box, more=0.0):
    return (box[..., 2] - box[..., 0] + more) * (box[..., 3] - box[..., 1] + more)


def common(a, b):
    return areas(torch.cat([torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])], -1)
                 ) * (torch.minimum(a[..., 2:], b[..., 2:]) > torch.maximum(a[..., :2], b[..., :2])).all(-1)


def iou(a, b, mode=0):
    a, b = a[None], b[:, None]
    inner = common(a, b)
    return inner / (areas(b, 0.01).expand_as(inner) if mode == 1 else areas(a, 0.01) + areas(b, 0.01) - inner)


def outer(a, b):
    return torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], -1)


def corners(box):
    return torch.cat([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2]).t()


def giou(a, b):
    a, b = corners(a), corners(b)
    union = areas(a) + areas(b) - common(a, b)
    return (common(a, b) / union - (areas(outer(a, b)) - union) / areas(outer(a, b)))[:, None]


def diou(a, b):
    a, b = corners(a), corners(b)
    around = outer(a, b)
    apart = ((a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) / 2).square().sum(-1)
    overlap = common(a, b) / (areas(a) + areas(b) - common(a, b))
    return (overlap - apart / (around[:, 2:] - around[:, :2]).square().sum(-1))[None]


def ciou(a, b):
    ratios = [torch.atan(box[2] / box[3]) for box in (a, b)]
    v = 4 / math.pi ** 2 * (ratios[0] - ratios[1]).square()
    a_box, b_box = corners(a), corners(b)
    overlap = common(a_box, b_box) / (areas(a_box) + areas(b_box) - common(a_box, b_box))
    weight = (v / (v - overlap + 1)).detach()  # it has no gradient
    return diou(a, b) - (v * weight)[None]


def one_hot(x):
    return torch.where(F.one_hot(x.long(), 5).bool(), 2.0, -1.0)


def dropped(x, mask):
    return torch_npu.npu_dropout_with_add_softmax(x, mask, 0.5, 0.0, -1)[2]


def signs(x):
    return torch_npu.npu_sign_bits_unpack(torch_npu.npu_sign_bits_pack(x, 1)[0], 1, torch.float32)[0]


INDICES = torch.tensor([[0, 4, 2], [1, 3, 3]], dtype=torch.int32)
STARTS, PLACES = torch.tensor([[0, 3, 1]], dtype=torch.int32), torch.tensor([4, 0, 2], dtype=torch.int32)
A, B = boxes(6), boxes(4)
CENTRED = [torch.cat([of(2, 8), torch.rand((2, 8), generator=random) + 0.2]) for _ in range(2)]
LAYERS = (of(2, 4, 7, 6), of(6, 2, 3, 3), of(6))
VOLUMES = (of(1, 2, 4, 5, 6), of(3, 2, 2, 3, 2), of(3))

# The function on the NPU, the formula on the CPU, the inputs.
USES = {
    "npu_slice": (lambda x: torch_npu.npu_slice(x, [1, 0, 2], [2, 3, 1]), lambda x: x[1:3, :3, 2:3], (of(4, 3, 5),)),
    "npu_slice of float16": (lambda x: torch_npu.npu_slice(x, [0, 1], [2, 2]), lambda x: x[:2, 1:3],
                             (of(3, 4).half(),)),
    "npu_indexing": (lambda x: torch_npu.npu_indexing(x, [0, 1], [4, 5], [2, 3]), lambda x: x[0:4:2, 1:5:3],
                     (of(4, 6),)),
    "npu_silu": (torch_npu.npu_silu, F.silu, (of(3, 5),)),
    "npu_mish": (torch_npu.npu_mish, F.mish, (of(3, 5),)),
    "npu_iou": (torch_npu.npu_iou, iou, (A, B)),
    "npu_iou of the foreground": (lambda a, b: torch_npu.npu_iou(a, b, 1), lambda a, b: iou(a, b, 1), (A, B)),
    "npu_ptiou": (torch_npu.npu_ptiou, iou, (A, B)),
    "npu_giou": (lambda a, b: torch_npu.npu_giou(a, b, True, False, 0), giou, CENTRED),
    "npu_diou": (lambda a, b: torch_npu.npu_diou(a, b, True, False, 0), diou, CENTRED),
    "npu_ciou": (lambda a, b: torch_npu.npu_ciou(a, b, True, False, 0, True), ciou, CENTRED),
    "npu_one_hot": (lambda x: torch_npu.npu_one_hot(x, -1, 5, 2, -1), one_hot, (INDICES,)),
    "npu_max": (lambda x: torch_npu.npu_max(x, 1), lambda x: x.max(1), (of(3, 5, 2),)),
    "npu_min": (lambda x: torch_npu.npu_min(x, -1), lambda x: x.min(-1), (of(3, 5, 2),)),
    "npu_transpose": (lambda x: torch_npu.npu_transpose(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1), (of(2, 3, 4),)),
    "npu_confusion_transpose": (lambda x: torch_npu.npu_confusion_transpose(x, (0, 2, 1), (2, 12), True),
                                lambda x: x.permute(0, 2, 1).reshape(2, 12), (of(2, 3, 4),)),
    "npu_pad": (lambda x: torch_npu.npu_pad(x, (1, 2, 0, 3)), lambda x: F.pad(x, (0, 3, 1, 2)), (of(3, 4),)),
    "npu_broadcast": (lambda x: torch_npu.npu_broadcast(x, (2, 3, 4)), lambda x: x.expand(2, 3, 4), (of(3, 1),)),
    "npu_conv2d": (lambda x, w, b: torch_npu.npu_conv2d(x, w, b, [2, 1], [1, 1], [1, 1], 2),
                   lambda x, w, b: F.conv2d(x, w, b, [2, 1], [1, 1], 1, 2), LAYERS),
    "npu_conv2d of float16": (lambda x, w, b: torch_npu.npu_conv2d(x.half(), w.half(), b.half(), [1, 1], [1, 0], [1, 2],
                                                                   2).float(),
                              lambda x, w, b: F.conv2d(x, w, b, 1, [1, 0], [1, 2], 2), LAYERS),
    "npu_conv3d": (lambda x, w, b: torch_npu.npu_conv3d(x, w, b, [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
                   lambda x, w, b: F.conv3d(x, w, b, [1, 2, 1], [1, 0, 1]), VOLUMES),
    "npu_stride_copy": (lambda x: torch_npu.npu_stride_copy(x, (3, 2), (1, 8), 2),
                        lambda x: x.as_strided((3, 2), (1, 8), 2), (of(4, 6),)),
    "a norm with the exponent 4": (lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 4.0, [1], True),
                                   lambda x: x.abs().pow(4).sum(1, keepdim=True).pow(0.25), (of(3, 5),)),
    "npu_sign_bits_unpack": (signs, lambda x: torch.where(x < 0, -1.0, 1.0), (of(16),)),
    "npu_masked_fill_range": (
        lambda x: torch_npu.npu_masked_fill_range(x, STARTS.npu(), (STARTS + 2).npu(), torch.ones(1).npu(), 1),
        lambda x: torch.where((torch.arange(5) - STARTS.t()).clamp(0, 1) == torch.arange(5) - STARTS.t(), 1.0, x),
        (of(3, 5),)),
    "npu_stride_add": (lambda a, b: torch_npu.npu_stride_add(a, b, 0, 1, 1), lambda a, b: a + b[:, 16:],
                       (of(2, 16, 3, 2), of(2, 32, 3, 2))),
    "npu_scatter": (lambda x, y: torch_npu.npu_scatter(x, PLACES.npu(), y, 1),
                    lambda x, y: x.scatter(1, PLACES.long()[:, None], y[:, None]), (of(3, 5), of(3))),
    "npu_sort_v2": (lambda x: torch_npu.npu_sort_v2(x, 1, True), lambda x: x.sort(1, True).values, (of(3, 5, 2),)),
    "npu_layer_norm_eval": (lambda x, w, b: torch_npu.npu_layer_norm_eval(x, [5], w, b, 0.25),
                            lambda x, w, b: F.layer_norm(x, [5], w, b, 0.25), (of(2, 3, 5), of(5), of(5))),
    "npu_dropout_with_add_softmax": (dropped, lambda x, mask: F.softmax(mask + 0.5 * x, -1),
                                     (of(1, 32, 128, 128), of(1, 32, 128, 128))),
}


def tensors_of(value):
    return [value] if torch.is_tensor(value) else list(value)


def check(name, found, wanted):
    for ours, reference in zip(tensors_of(found), tensors_of(wanted), strict=True):
        torch.testing.assert_close(ours.cpu().to(reference.dtype), reference, rtol=4e-3, atol=4e-3,
                                   msg=lambda text: f"{name}: {text}")


def silu_in_place():
    x = of(3, 4)
    check("npu_silu_", torch_npu.npu_silu_(x.npu()), F.silu(x))


def slice_into_a_tensor():
    x, out = of(3, 4), torch.zeros(2, 2).npu()
    torch_npu.npu_slice(x.npu(), [1, 1], [2, 2], out=out)
    check("npu_slice into a tensor", out, x[1:, 1:3])


def gradient_of_mish():
    x = of(3, 4)
    on_npu, on_cpu = x.npu().requires_grad_(), x.clone().requires_grad_()
    torch_npu.npu_mish(on_npu).square().sum().backward()
    F.mish(on_cpu).square().sum().backward()
    check("the gradient of npu_mish", on_npu.grad, on_cpu.grad)


def gradient_of_silu():
    x = of(3, 4)
    on_npu, on_cpu = x.npu().requires_grad_(), x.clone().requires_grad_()
    torch_npu.npu_silu(on_npu).square().sum().backward()
    F.silu(on_cpu).square().sum().backward()
    check("the gradient of npu_silu", on_npu.grad, on_cpu.grad)


def gradients_of_extremes():
    for function, formula in ((torch_npu.npu_max, torch.max), (torch_npu.npu_min, torch.min)):
        for dim, keep in ((1, False), (-1, True)):
            x = of(3, 4, 5)
            on_npu, on_cpu = x.npu().requires_grad_(), x.clone().requires_grad_()
            function(on_npu, dim, keep)[0].square().sum().backward()
            formula(on_cpu, dim, keep)[0].square().sum().backward()
            check("the gradient of an extreme", on_npu.grad, on_cpu.grad)


def masked_softmax():
    x, mask = of(2, 3, 32, 32), torch.rand((2, 1, 32, 32), generator=random) < 0.3
    on_npu, on_cpu = x.npu().requires_grad_(), x.clone().requires_grad_()
    found = torch_npu.npu_scaled_masked_softmax(on_npu, mask.npu(), 0.5, False)
    wanted = F.softmax((on_cpu * 0.5).masked_fill(mask, -10000.0), -1)
    check("npu_scaled_masked_softmax", found.detach(), wanted.detach())
    found.square().sum().backward()
    wanted.square().sum().backward()
    check("the gradient of npu_scaled_masked_softmax", on_npu.grad, on_cpu.grad)


def copy_between_views():
    x, target = of(6, 5), torch.zeros(4, 6)
    on_npu = target.npu()
    torch_npu.npu_view_copy(on_npu[::2], x.npu()[:, :2].t(), False)
    target[::2] = x[:, :2].t()
    check("npu_view_copy", on_npu, target)


def status_of_numbers():
    memory = torch_npu.npu_alloc_float_status(torch.ones(8).npu())
    check("npu_alloc_float_status", memory, torch.zeros(8))
    check("npu_get_float_status", torch_npu.npu_get_float_status(memory), torch.zeros(8, dtype=torch.int32))
    torch_npu.npu_clear_float_status(memory)


def random_samples():
    labels = torch.tensor([1, 0, -1, 1, 0, 1, 0, 0, 1, 0], dtype=torch.int32)
    sample = torch_npu.npu_sub_sample(labels.npu(), 5, 0.6).cpu()
    assert (sample == 1).sum() == 3 and (sample == 0).sum() == 2, sample
    assert ((sample == -1) | (sample == labels)).all(), sample
    marked = torch.tensor([[True, False, True], [False, True, False]])
    indices, valid = (x.cpu() for x in torch_npu.npu_random_choice_with_mask(marked.npu(), 4, 1, 0))
    assert sorted(indices[:3].tolist()) == [[0, 0], [0, 2], [1, 1]] and indices[3].tolist() == [0, 0], indices
    assert valid.tolist() == [True, True, True, False], valid


def ciou_on_npu(a, b, trans, is_cross, mode):
    return torch_npu.npu_ciou(a, b, trans, is_cross, mode, True)


def gradients_of_overlaps():
    for function, formula in ((torch_npu.npu_giou, giou), (torch_npu.npu_diou, diou), (ciou_on_npu, ciou)):
        on_npu = [x.npu().requires_grad_() for x in CENTRED]
        on_cpu = [x.clone().requires_grad_() for x in CENTRED]
        function(*on_npu, True, False, 0).square().sum().backward()
        formula(*on_cpu).square().sum().backward()
        for ours, reference in zip(on_npu, on_cpu, strict=True):
            check("the gradient of an overlap", ours.grad, reference.grad)


def gradients_of_convolutions():
    convolve, transpose = torch_npu.npu_convolution, torch_npu.npu_convolution_transpose
    uses = [(lambda x, w, b: convolve(x, w, b, [2, 1], [1, 1], [1, 2], 2),
             lambda x, w, b: F.conv2d(x, w, b, [2, 1], 1, [1, 2], 2), LAYERS),
            (lambda x, w, b: convolve(x, w, b, [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
             lambda x, w, b: F.conv3d(x, w, b, [1, 2, 1], [1, 0, 1]), VOLUMES),
            (lambda x, w, b: transpose(x, w, b, [1, 0], [1, 0], [2, 1], [1, 1], 1),
             lambda x, w, b: F.conv_transpose2d(x, w, b, [2, 1], [1, 0], [1, 0]),
             (of(2, 3, 4, 5), of(3, 2, 3, 2), of(2)))]
    for function, formula, inputs in uses:
        on_npu = [x.npu().requires_grad_() for x in inputs]
        on_cpu = [x.clone().requires_grad_() for x in inputs]
        function(*on_npu).square().mean().backward()
        formula(*on_cpu).square().mean().backward()
        for ours, reference in zip(on_npu, on_cpu, strict=True):
            check("the gradient of a convolution", ours.grad, reference.grad)


def adam():
    var, gradient = of(40), of(40)
    m, v = torch.zeros(40), torch.zeros(40)
    out = [x.clone().npu() for x in (var, m, v)]
    torch_npu.npu_bert_apply_adam(0.5, 0.9, 0.99, 1e-6, gradient.npu(), 1.0, 2.0, 0.25, None, 0, out=tuple(out))
    scaled = gradient / 2
    m, v = 0.1 * scaled, 0.01 * scaled.square()
    check("npu_bert_apply_adam", out, [var - 0.5 * (m / (v.sqrt() + 1e-6) + 0.25 * var), m, v])


def places_of_boxes():
    anchors = torch.tensor([[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]])
    truths = torch.tensor([[5.0, 6.0, 7.0, 8.0], [7.0, 8.0, 9.0, 6.0]])
    zeros, ones = [0.0] * 4, [1.0] * 4
    check("npu_bounding_box_encode",
          torch_npu.npu_bounding_box_encode(anchors.npu(), truths.npu(), *zeros, 0.1, 0.1, 0.2, 0.2),
          torch.tensor([[40 / 3, 40 / 3, 0, 0], [40 / 3, 20 / 3, 0, math.log(1 / 3) * 5]]))
    check("npu_bounding_box_decode",
          torch_npu.npu_bounding_box_decode(anchors.npu(), truths.npu(), *zeros, *ones, (10, 10), 0.1),
          torch.tensor([[2.5, 6.5, 9, 9], [9.0] * 4]))
    strides = torch.tensor([2, 2], dtype=torch.int32)
    check("npu_yolo_boxes_encode", torch_npu.npu_yolo_boxes_encode(anchors.npu(), truths.npu(), strides.npu()),
          torch.tensor([[1.0, 1.0, 0, 0], [1.0, 1.0, 0, math.log(1e-6)]]))
    flags = torch.zeros(3, 4, 2, dtype=torch.uint8)
    flags[1, 1] = flags[2, 2] = 1
    check("npu_anchor_response_flags", torch_npu.npu_anchor_response_flags(anchors.npu(), [3, 4], [2, 2], 2),
          flags.view(-1))


def regions():
    features = torch.arange(1.0, 37).view(1, 1, 6, 6)
    found = torch_npu.npu_roi_align(features.npu(), torch.tensor([[0, -2.0, -2.0, 22.0, 22.0]]).npu(), 0.25, 3, 3, 2, 0)
    check("npu_roi_align", found, torch.tensor([[[[4.5, 6.5, 8.5], [16.5, 18.5, 20.5], [28.5, 30.5, 32.5]]]]))
    # The pooling is linear, so a gradient times the features is the sum of the results that it weighs.
    rois, weights = torch.tensor([[0, 3.0, 4.0, 17.0, 19.0], [0, -2.0, -2.0, 22.0, 22.0]]).npu(), of(2, 1, 3, 3)
    align = torch_npu.contrib.module.ROIAlign((3, 3), 0.25, 2, False)
    on_npu = features.npu().requires_grad_()
    pooled = align(on_npu, rois)
    (pooled * weights.npu()).sum().backward()
    gradient = on_npu.grad.cpu()
    check("the gradient of ROIAlign", (gradient * features).sum(), (pooled.detach().cpu() * weights).sum())
    check("the sum of the gradient", gradient.sum(), weights.sum())


def dropout_with_masks():
    x = of(4, 50)
    on_npu = x.npu().requires_grad_()
    found, mask = torch.ops.npu._dropout_with_byte_mask(on_npu, 0.25)
    kept = mask.cpu().float().view(4, 50) / 0.75
    check("dropout with a mask of bytes", found.detach(), x * kept)
    assert 0.8 < kept.mean() < 1.2, kept
    found.sum().backward()
    check("the gradient of dropout with a mask of bytes", on_npu.grad, kept)
    bits = torch.tensor([0b00000101] + [0] * 15, dtype=torch.uint8).npu()
    found = torch_npu.npu_dropout_do_mask(x[:, :2].npu(), bits, 0.5)[0]
    wanted = torch.zeros(8)
    wanted[0], wanted[2] = 2 * x[0, 0], 2 * x[1, 0]
    check("npu_dropout_do_mask", found, wanted.view(4, 2))


def gradient_of_a_layer_norm():
    x, gamma, dy = of(6, 5), of(5), of(6, 5)
    on_cpu = [t.clone().requires_grad_() for t in (x, gamma, torch.zeros(5))]
    F.layer_norm(on_cpu[0], [5], on_cpu[1], on_cpu[2], 0.0).backward(dy)
    found = torch_npu.npu_layernorm_grad(dy.npu(), x.npu(), [5], x.mean(1).npu(), x.var(1, unbiased=False).npu(),
                                         gamma.npu(), torch.zeros(5).npu())
    check("npu_layernorm_grad", found, [t.grad for t in on_cpu])


def turned_boxes():
    """Rows of boxes (x, y, w, h, angle) whose sides lie along the axes, and their corners."""
    first, size = torch.rand((12, 2), generator=random) * 4, torch.rand((12, 2), generator=random) * 3 + 0.5
    turned = torch.arange(12) % 2 == 1
    rows = torch.cat([first + size / 2, torch.where(turned[:, None], size.flip(1), size),
                      torch.where(turned, 90.0, 0.0)[:, None]], 1)
    return rows, torch.cat([first, first + size], 1)


def kept_boxes(overlap, scores):
    """Positions of the boxes that no better one overlaps by more than 0.3, from the highest score on."""
    left = []
    for i in scores.argsort(descending=True).tolist():
        if not any(overlap[i, j] > 0.3 for j in left):
            left.append(i)
    return left


def suppressed_boxes():
    corners, scores = boxes(12), torch.rand(12, generator=random)
    shared = common(corners[:, None], corners[None])
    overlap = shared / (areas(corners)[:, None] + areas(corners)[None] - shared)
    left = kept_boxes(overlap, scores)
    order = scores.argsort(descending=True)
    rows = torch.cat([corners[order], scores[order, None]], 1)
    mask = torch.tensor([i in left for i in order.tolist()], dtype=torch.uint8)
    check("npu_nms_with_mask", torch_npu.npu_nms_with_mask(rows.npu(), 0.3),
          [rows, torch.arange(12, dtype=torch.int32), mask])
    positions = torch.tensor(left + [0] * (12 - len(left)), dtype=torch.int32)
    check("npu_nms_v4", torch_npu.npu_nms_v4(corners.npu(), scores.npu(), 12, torch.tensor(0.3).npu(),
                                             torch.tensor(0.0).npu()),
          [positions, torch.tensor(len(left), dtype=torch.int32)])
    best, of_best = torch.zeros(1, 12, 4), torch.zeros(1, 12)
    best[0, :len(left)], of_best[0, :len(left)] = corners[left], scores[left]
    check("npu_batch_nms", torch_npu.npu_batch_nms(corners[None, :, None].npu(), scores[None, :, None].npu(), 0.0, 0.3,
                                                   12, 12),
          [best, of_best, torch.zeros(1, 12), torch.tensor([len(left)], dtype=torch.int32)])


def assigned_boxes():
    overlap, flags = torch.rand((3, 8), generator=random), torch.tensor([1, 1, 0, 1, 1, 0, 1, 1], dtype=torch.uint8)
    best, truth = overlap.max(0)
    of_truth, box = overlap.max(1)
    wanted = torch.where((best > 0.6) & (flags == 1), truth + 1.0, torch.zeros(8))
    for k in range(3):
        if of_truth[k] > 0.5 and flags[box[k]] == 1:
            wanted[box[k]] = k + 1
    found = torch_npu.npu_grid_assign_positive(torch.zeros(8).npu(), overlap.npu(), flags.npu(), best.npu(),
                                               truth.int().npu(), of_truth.npu(), box.int().npu(), 3, 0.6, 0.5, False)
    check("npu_grid_assign_positive", found, wanted)


def scale_of_numbers():
    """The scale of one step of the search loses less than those of the others; here that of the last one."""
    data = of(4000)
    sums = torch.histc(data, 128, data.min().item(), data.max().item()).cumsum(0).int()
    scale, offset = torch_npu.npu_ifmr(data.npu(), data.min().view(1).npu(), data.max().view(1).npu(), sums.npu(),
                                       0.999999, 0.999999, 0.25, 1.0, 0.25, False)
    greatest = data.abs().max()

    def loss(step):
        its = greatest * step / 127
        return ((data / its).round().clamp(-128, 127) * its - data).square().sum()

    best = min((0.25, 0.5, 0.75, 1.0), key=loss)
    torch.testing.assert_close(scale.cpu()[0], greatest * best / 127, rtol=0.02, atol=0)
    check("the offset of npu_ifmr", offset, torch.zeros(1))


def deformable_convolution():
    """By name where the adapter compiles operators; else it calls aclnnDeformableConv2d."""
    x, weight, scales = of(2, 4, 6, 5), of(3, 4, 3, 3), torch.rand((2, 9, 6, 5), generator=random)
    offset = torch.cat([torch.ones(2, 9, 6, 5), torch.zeros(2, 9, 6, 5), scales], 1)  # one element to the right
    leaves = [leaf.clone().requires_grad_() for leaf in (x, weight, scales)]
    columns = F.unfold(F.pad(leaves[0], (0, 2, 1, 1)), 3).view(2, 4, 9, 30) * leaves[2].view(2, 1, 9, 30)
    wanted = torch.einsum("ock,nckp->nop", leaves[1].view(3, 4, 9), columns).view(2, 3, 6, 5)
    wanted.square().sum().backward()
    torch.npu.set_compile_mode(jit_compile=True)
    try:
        on_npu = [leaf.npu() for leaf in (x, weight, offset)]
        sizes = {"kernel_size": [3, 3], "stride": [1, 1, 1, 1], "padding": [1, 1, 1, 1]}
        found, samples = torch_npu.npu_deformable_conv2d(*on_npu, None, **sizes)
        check("npu_deformable_conv2d", found, wanted.detach())
        of_result = 2 * wanted.detach().npu()
        gradients = torch_npu.npu_deformable_conv2dbk(on_npu[0], of_result, samples, *on_npu[1:], **sizes)
        check("npu_deformable_conv2dbk", [*gradients[:2], gradients[2].cpu()[:, 18:]], [leaf.grad for leaf in leaves])
    finally:
        torch.npu.set_compile_mode(jit_compile=False)


def rotated_boxes():
    rows, by_corners = turned_boxes()
    shared = common(by_corners[:, None], by_corners[None])
    overlap = shared / (areas(by_corners)[:, None] + areas(by_corners)[None] - shared)
    on_npu = rows[None].npu()
    check("npu_rotated_overlaps", torch_npu.npu_rotated_overlaps(on_npu, on_npu), shared[None])
    check("npu_rotated_iou", torch_npu.npu_rotated_iou(on_npu, on_npu), overlap[None])
    scores = torch.rand(12, generator=random)
    left = kept_boxes(overlap, scores)
    found, count = torch_npu.npu_nms_rotated(rows.npu(), scores.npu(), 0.3)
    check("npu_nms_rotated", [found, count], [torch.tensor(left, dtype=torch.int32),
                                              torch.tensor([len(left)], dtype=torch.int32)])
    weight = torch.ones(5).npu()
    anchors, truths = (torch.cat([boxes(6).t(), torch.rand((1, 6), generator=random) * 60])[None] for _ in range(2))
    places = torch_npu.npu_rotated_box_encode(anchors.npu(), truths.npu(), weight)
    check("npu_rotated_box_decode", torch_npu.npu_rotated_box_decode(anchors.npu(), places, weight), truths)


def position_sensitive_regions():
    """Regions of whole elements at scale 1: each place of the grid is the average of 2 by 3 elements."""
    features, rois = of(1, 8, 9, 9), torch.zeros(1, 5, 16)
    rois[0, 1], rois[0, 2] = torch.arange(16) % 4, torch.arange(16) // 4
    rois[0, 3], rois[0, 4] = rois[0, 1] + 5, rois[0, 2] + 3
    x = features.clone().requires_grad_()
    wanted = torch.stack([torch.stack([x[0, 4 * d:4 * d + 4].view(2, 2, 9, 9)[
        row, column, top + 2 * row:top + 2 * row + 2, left + 3 * column:left + 3 * column + 3].mean()
        for d in range(2) for row in range(2) for column in range(2)]).view(2, 2, 2)
        for left, top in rois[0, 1:3].t().long().tolist()])
    on_npu = features.npu().requires_grad_()
    found = torch_npu.npu_ps_roi_pooling(on_npu, rois.npu(), 1.0, 2, 2)
    check("npu_ps_roi_pooling", found.detach(), wanted.detach())
    wanted.square().sum().backward()
    found.square().sum().backward()
    check("the gradient of npu_ps_roi_pooling", on_npu.grad, x.grad)


def steps_of_adam():
    """Powers of the betas are those of the step in one operator, and those before it in the other."""
    old, gradient, greatest = [of(40), of(40), of(40).square()], of(40), of(40).square()
    m, v = 0.9 * old[1] + 0.1 * gradient, 0.99 * old[2] + 0.01 * gradient.square()
    for nesterov in (False, True):
        direction = 0.9 * m + 0.1 * gradient if nesterov else m
        out = tuple(x.clone().npu() for x in old)
        torch_npu.npu_apply_adam(0.81, 0.98, 0.5, 0.9, 0.99, 1e-3, gradient.npu(), False, nesterov, out=out)
        rate = 0.5 * math.sqrt(1 - 0.98) / (1 - 0.81)
        check("npu_apply_adam", out, [old[0] - rate * direction / (v.sqrt() + 1e-3), m, v])
    for amsgrad in (False, True):
        second = torch.maximum(greatest, v) if amsgrad else v
        out = tuple(x.clone().npu() for x in old)
        torch_npu.npu_apply_adam_w(0.9, 0.98, 0.5, 0.1, 0.9, 0.99, 1e-3, gradient.npu(),
                                   greatest.npu() if amsgrad else None, amsgrad, False, out=out)
        root = (second / (1 - 0.98 * 0.99)).sqrt() + 1e-3
        check("npu_apply_adam_w", out, [old[0] * (1 - 0.5 * 0.1) - 0.5 / (1 - 0.9 * 0.9) * m / root, m, v])


def side_by_side(heads):
    return heads.permute(0, 2, 1, 3).reshape(heads.shape[0] * heads.shape[2], -1)


def attention_scores():
    tensors, padding = [of(2, 3, 16, 32).half() for _ in range(3)], of(2, 1, 16, 16).half()
    gradient = of(32, 96).half()

    def scores(kept):
        query, key, value = leaves = [x.float().requires_grad_() for x in tensors]
        softmax = F.softmax(query @ key.transpose(2, 3) * 0.25 + padding.float(), -1)
        result = side_by_side(softmax * kept @ value)
        result.backward(gradient.float())
        return result.detach(), softmax.detach(), [x.grad for x in leaves]

    on_npu = [x.npu().requires_grad_() for x in tensors]
    found = torch_npu.npu_fused_attention_score(*on_npu, padding.npu(), 0.25, 1.0)
    found.backward(gradient.npu())
    result, _, gradients = scores(1)
    check("npu_fused_attention_score", found.detach(), result)
    check("the gradient of npu_fused_attention_score", [x.grad for x in on_npu], gradients)
    on_npu = [x.npu() for x in tensors]
    found, softmax, mask = torch_npu.npu_fused_attention_score_fwd(*on_npu, padding.npu(), 0.25, 0.5)
    result, wanted, gradients = scores(mask.cpu().view(2, 3, 16, 16) / 0.5)
    check("npu_fused_attention_score_fwd", [found, softmax], [result, wanted])
    rows = torch_npu.npu_fused_attention_score_grad(gradient.npu(), softmax, *on_npu, mask, 0.25, 0.5)
    check("npu_fused_attention_score_grad", rows, [side_by_side(x) for x in gradients])


def attention_layer():
    heads, width, targets, sources = 16, 16, 16, 32
    tensors = [of(2 * length, 256).half() for length in (targets, sources, sources)]
    weights, biases = [of(256, 256).half() / 16 for _ in range(4)], [of(256).half() for _ in range(4)]
    mask, gradient = of(2, heads, targets, sources).half(), of(2 * targets, 256).half() / 8
    on_npu = [x.npu().requires_grad_() for x in (*tensors, *weights, *biases)]
    query, key, value, wq, wk, wv, wo, bq, bk, bv, bo = on_npu
    found = torch_npu.npu_multi_head_attention(query, key, value, wq, wk, wv, mask.npu(), wo, bq, bk, bv, bo, None,
                                               heads, width, sources, targets, 0.0, True)[0]
    found.backward(gradient.npu())
    on_cpu = [x.float().requires_grad_() for x in (*tensors, *weights, *biases)]
    query, key, value = [F.linear(x, w, b).view(2, -1, heads, width).transpose(1, 2)
                         for x, w, b in zip(on_cpu[:3], on_cpu[3:6], on_cpu[7:10], strict=True)]
    scores = F.softmax(query @ key.transpose(2, 3) / 4 + mask.float(), -1)
    result = F.linear(side_by_side(scores @ value), on_cpu[6], on_cpu[10])
    result.backward(gradient.float())
    check("npu_multi_head_attention", found.detach(), result.detach())
    for ours, reference in zip(on_npu, on_cpu, strict=True):
        torch.testing.assert_close(ours.grad.cpu().float().view(reference.shape), reference.grad, rtol=2e-2, atol=2e-2)


def attention_projections():
    x, gamma, beta, grown = of(32, 64).half(), of(64).half(), of(64).half(), of(32, 64).half()
    kernels, biases = [of(64, 64).half() / 8 for _ in range(3)], [of(64).half() for _ in range(3)]
    on_npu = [y.npu() for y in (x, *kernels, gamma, beta, *biases)]
    found = torch_npu.npu_fused_attention_layernorm_qkv_fwd(*on_npu, 16, 4)
    variance, mean = torch.var_mean(x.float(), 1, correction=0)
    norm = F.layer_norm(x.float(), [64], gamma.float(), beta.float(), 1e-5)
    apart = [(norm @ k.float() + b.float()).view(2, 16, 4, 16).transpose(1, 2)
             for k, b in zip(kernels, biases, strict=True)]
    check("npu_fused_attention_layernorm_qkv_fwd", found, [norm, *apart, mean, variance])
    gradients = [of(32, 64).half() for _ in range(3)]
    found = torch_npu.npu_fused_attention_qkv_grad(*[g.npu() for g in gradients], *[k.npu() for k in kernels], x.npu(),
                                                   grown.npu())
    of_x = grown.float() + sum(g.float() @ k.float().t() for g, k in zip(gradients, kernels, strict=True))
    check("npu_fused_attention_qkv_grad", found, [of_x, *[x.float().t() @ g.float() for g in gradients],
                                                  *[g.float().sum(0) for g in gradients]])


def main():
    for name, (on_npu, on_cpu, inputs) in USES.items():
        check(name, on_npu(*[x.npu() for x in inputs]), on_cpu(*inputs))
    for use in (silu_in_place, slice_into_a_tensor, gradient_of_mish, gradient_of_silu, gradients_of_overlaps, adam,
                places_of_boxes, regions, rotated_boxes, position_sensitive_regions, suppressed_boxes, assigned_boxes,
                scale_of_numbers, deformable_convolution, gradients_of_convolutions, dropout_with_masks,
                gradient_of_a_layer_norm, steps_of_adam, attention_scores, attention_layer, attention_projections):
        use()
    print("equal")


main()
