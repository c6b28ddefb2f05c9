"""A right program with Triton kernels, of which lint has no finding when the kernels run on the host. The lines with
"finds" are mistakes, which `kernels_on_host.py faulty` makes. Prints "equal" at the end."""
import contextlib
import sys

import torch
import torch_npu  # noqa: F401  pylint: disable=unused-import
from acltape_triton import language as tl
from acltape_triton.kernel import TRITON as triton

FAULTY = sys.argv[1:] == ["faulty"]


@triton.jit
def square(x_ptr, out_ptr, halves_ptr, rows: tl.constexpr, columns: tl.constexpr):
    """The squares of x, and the halves of its first row, which nothing here uses."""
    at = tl.arange(0, rows * columns)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * x)
    tl.store(halves_ptr + at, x / 2, mask=at < columns)


def squared(x):
    out, halves = torch.empty_like(x), torch.empty(8, device=x.device)
    square[(1,)](x, out, halves, rows=2, columns=8)
    return out


def layer(x, weight, graph=None):
    """The first part is a graph, when there is one; the rest runs in each round."""
    with contextlib.nullcontext() if graph is None else torch.npu.graph(graph):
        doubled = x * weight
        result = squared(doubled) + 1
    return result, result.sum(0)


def leave_nan():
    """Memory with bytes of NaN goes back to the allocator."""
    torch.full((2, 8), -1, dtype=torch.int32, device="npu")


def main():
    x, weight = torch.ones(2, 8).npu(), torch.full((8,), 2.0).npu()
    layer(x, weight)
    graph = torch.npu.NPUGraph()
    result, _ = layer(x, weight, graph)
    kept, weights = [], [weight]
    for step in range(4):
        fresh = squared(torch.full((2, 8), float(step)).npu())
        x.copy_(fresh)
        graph.replay()
        kept.append(result.tolist())
        if FAULTY:
            weights.append(torch.full((8,), step + 3.0, device="npu"))  # finds LINT-52
    if kept != [[[4.0 * step**4 + 1] * 8] * 2 for step in range(4)]:
        raise SystemExit(f"the graph: {kept}")

    # A compiled function copies the tensors that a kernel may write, before anything wrote them.
    compiled = torch.compile(squared, fullgraph=True, backend="aot_eager")
    for _ in range(4):
        leave_nan()
        if compiled(x).tolist() != [[81.0] * 8] * 2:
            raise SystemExit("the compiled function")
    if FAULTY:
        squared(-x).neg().log().clone().tolist()  # finds LINT-41
    print("equal")


if __name__ == "__main__":
    main()
