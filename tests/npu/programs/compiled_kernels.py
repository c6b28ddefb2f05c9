"""Triton kernels in functions that torch.compile makes one graph of. Prints "equal" at the end."""
import torch
import torch_npu  # noqa: F401  pylint: disable=unused-import
from acltape_triton import language as tl
from acltape_triton.kernel import TRITON as triton


@triton.jit
def halved(x):
    return x // 2


@triton.jit
def scaled(x_ptr, out_ptr, count, scale, inner: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr, mask_ptr=None):
    """out = inner(x) * scale in another type. The last program of a wide grid has nothing to do."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = inner(tl.load(x_ptr + at, mask=at < count))
    tl.store(out_ptr + at, (x * scale).to(TYPE), mask=at < count)


def work(x):
    """A kernel between operators, whose grid and block depend on the size of the tensor."""
    doubled = x * 2
    out = torch.empty(x.shape, dtype=torch.float16, device=x.device)
    count = x.shape[0]
    scaled[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](
        doubled, out, count, 0.5, halved, torch.float16, BLOCK=min(64, count))
    return out + 1


def fill(x, kept):
    """A kernel that writes an argument of the function, of which it takes a part."""
    scaled[(1,)](x, kept[4:], 8, 1.0, halved, torch.int32, BLOCK=8)


def check(what, found, expected):
    if found.tolist() != expected:
        raise SystemExit(f"{what}: {found.tolist()} instead of {expected}")


def main():
    for backend in ("eager", "aot_eager"):
        compiled = torch.compile(work, fullgraph=True, dynamic=True, backend=backend)
        for count in (100, 300, 7):
            x = torch.arange(count, dtype=torch.int32).npu()
            check(f"{backend}, {count}", compiled(x), [place * 0.5 + 1 for place in range(count)])
        kept = torch.full((14,), 9, dtype=torch.int32).npu()
        torch.compile(fill, fullgraph=True, backend=backend)(torch.arange(8, dtype=torch.int32).npu(), kept)
        check(f"{backend}, kept", kept, [9] * 4 + [place // 2 for place in range(8)] + [9] * 2)

    compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
    x = torch.arange(100, dtype=torch.int32).npu()
    compiled(x)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        out = compiled(x)
    for first in (0, 1000):
        x.copy_(torch.arange(first, first + 100, dtype=torch.int32))
        graph.replay()
        check(f"graph, {first}", out, [place * 0.5 + 1 for place in range(first, first + 100)])
    print("equal")


if __name__ == "__main__":
    main()
