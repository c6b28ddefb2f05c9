"""Triton kernels on the soft device, eagerly and in captured graphs, against numpy. Prints "equal" at the end."""
import sys

import numpy
import torch
import torch_npu  # noqa: F401  pylint: disable=unused-import

if "--of-vllm" in sys.argv:
    from vllm.triton_utils import tl, triton
else:
    try:
        import triton
        import triton.language as tl
    except ModuleNotFoundError:  # this environment has none; the interpreter itself
        from acltape_triton import language as tl
        from acltape_triton.kernel import TRITON as triton


@triton.jit
def add_some(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """A block for each program, and a mask at the end."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def halved(x):
    return x // 2


@triton.jit
def positions(starts_ptr, out_ptr, BLOCK: tl.constexpr):
    """A loop whose bounds are read from a tensor; the last program returns early."""
    row = tl.program_id(axis=0)
    if row == tl.num_programs(0) - 1:
        return
    begin = tl.load(starts_ptr + row).to(tl.int64)
    end = tl.load(starts_ptr + row + 1).to(tl.int64)
    for place in range(begin, end, BLOCK):
        offsets = place + tl.arange(0, BLOCK)
        inside = offsets - begin
        wide = inside * 3_000_000_000 + halved(inside - 3)
        tl.store(out_ptr + offsets, tl.where(inside % 2 == 0, wide, -1), mask=offsets < end)


@triton.jit
def transposed(in_ptr, out_ptr, rows, columns, TILE: tl.constexpr):
    """A grid of two dimensions, with blocks of two."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    mask = (row < rows) & (column < columns)
    tile = tl.load(in_ptr + row * columns + column, mask=mask)
    tl.store(out_ptr + column * rows + row, tile, mask=mask)


@triton.jit
def normalised(x_ptr, out_ptr, size, scale, BLOCK: tl.constexpr):
    """Reductions of a row, in float32."""
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * size + place, mask=place < size, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / size
    tl.store(out_ptr + row * size + place, x * tl.rsqrt(mean_square + 1e-6) * scale, mask=place < size)


def check(what, found, expected):
    if not numpy.array_equal(found.cpu().numpy(), expected):
        raise SystemExit(f"{what}: {found.cpu()} instead of {expected}")


class Work:
    """Inputs, outputs, the launches, and what numpy makes of the inputs."""

    def __init__(self):
        self.x = torch.arange(1000, dtype=torch.float32).npu()
        self.starts = torch.tensor([0, 5, 5, 40, 100], dtype=torch.int32).npu()
        self.matrix = torch.arange(35 * 20, dtype=torch.int64).reshape(35, 20).npu()
        self.halves = (torch.arange(3 * 48, dtype=torch.float32).reshape(3, 48) / 16).half().npu()
        self.clear()

    def clear(self):
        self.sum = torch.zeros(1000).npu()
        self.places = torch.zeros(100, dtype=torch.int64).npu()
        self.turned = torch.zeros(20, 35, dtype=torch.int64).npu()
        self.rows = torch.zeros(3, 48, dtype=torch.float16).npu()

    def launch(self):
        doubled = self.x * 2  # earlier work of the stream
        add_some[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](self.x, doubled, self.sum, 1000, BLOCK=256)
        self.sum.mul_(2)      # later work
        positions[(5,)](self.starts, self.places, BLOCK=16)
        transposed[(5, 3)](self.matrix, self.turned, 35, 20, TILE=8, num_warps=4)
        normalised[(3,)](self.halves, self.rows, 48, 0.5, BLOCK=64)

    def check(self, what):
        check(f"{what}, add", self.sum, self.x.cpu().numpy() * 6)
        starts = self.starts.cpu().numpy()
        inside = numpy.concatenate([numpy.arange(b - a) for a, b in zip(starts, starts[1:])])
        half = numpy.trunc((inside - 3) / 2).astype(numpy.int64)
        check(f"{what}, positions", self.places, numpy.where(inside % 2 == 0, inside * 3_000_000_000 + half, -1))
        check(f"{what}, transposed", self.turned, self.matrix.cpu().numpy().T)
        wide = self.halves.cpu().numpy().astype(numpy.float32)
        mean = (wide * wide).sum(1, keepdims=True, dtype=numpy.float64) / 48
        numpy.testing.assert_allclose(self.rows.cpu().numpy(), wide / numpy.sqrt(mean + 1e-6) / 2, rtol=2e-3)


def main():
    work = Work()
    work.launch()
    work.check("eager")

    graph = torch.npu.NPUGraph()
    work.clear()
    torch.npu.synchronize()
    with torch.npu.graph(graph):
        work.launch()
    for factor in (1, 3):
        work.x.copy_(torch.arange(1000, dtype=torch.float32) * factor)
        work.starts.copy_(torch.tensor([0, 5 * factor, 30, 40, 100], dtype=torch.int32))
        for each in (work.sum, work.places, work.turned, work.rows):
            each.zero_()
        graph.replay()
        work.check(f"graph, {factor}")

    # Many launches that wait while the host goes on, on another stream.
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        for _ in range(200):
            add_some[(1,)](work.sum, work.sum, work.sum, 0, BLOCK=8)
            add_some[(4,)](work.x, work.x, work.sum, 1000, BLOCK=256)
    stream.synchronize()
    check("another stream", work.sum, work.x.cpu().numpy() * 2)
    try:
        add_some[(1,)](torch.zeros(8), work.x, work.sum, 8, BLOCK=8)
        raise SystemExit("a tensor of the host was taken")
    except ValueError as error:
        print(error)
    print("equal")


if __name__ == "__main__":
    main()
