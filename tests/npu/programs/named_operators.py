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
    "npu_sign_bits_unpack": (signs, lambda x: torch.where(x < 0, -1.0, 1.0), (of(16),)),
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


def turned_boxes():
    """Rows of boxes (x, y, w, h, angle) whose sides lie along the axes, and their corners."""
    first, size = torch.rand((12, 2), generator=random) * 4, torch.rand((12, 2), generator=random) * 3 + 0.5
    turned = torch.arange(12) % 2 == 1
    rows = torch.cat([first + size / 2, torch.where(turned[:, None], size.flip(1), size),
                      torch.where(turned, 90.0, 0.0)[:, None]], 1)
    return rows, torch.cat([first, first + size], 1)


def rotated_boxes():
    rows, by_corners = turned_boxes()
    shared = common(by_corners[:, None], by_corners[None])
    overlap = shared / (areas(by_corners)[:, None] + areas(by_corners)[None] - shared)
    on_npu = rows[None].npu()
    check("npu_rotated_overlaps", torch_npu.npu_rotated_overlaps(on_npu, on_npu), shared[None])
    check("npu_rotated_iou", torch_npu.npu_rotated_iou(on_npu, on_npu), overlap[None])
    scores, left = torch.rand(12, generator=random), []
    for i in scores.argsort(descending=True).tolist():
        if not any(overlap[i, j] > 0.3 for j in left):
            left.append(i)
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


def main():
    for name, (on_npu, on_cpu, inputs) in USES.items():
        check(name, on_npu(*[x.npu() for x in inputs]), on_cpu(*inputs))
    for use in (silu_in_place, slice_into_a_tensor, gradient_of_mish, gradient_of_silu, gradients_of_overlaps, adam,
                places_of_boxes, regions, rotated_boxes, position_sensitive_regions):
        use()
    print("equal")


main()
