"""Products of torch_npu that communicate, against products and sums on the CPU: ranks_fused.py [ranks] [graph]."""
import ranks
import torch
import torch.distributed as dist
import torch_npu


def values(rank, shape, dtype, salt):
    generator = torch.Generator().manual_seed(100 * rank + salt)
    return torch.randn(shape, generator=generator).to(dtype)


def expect(what, got, wanted, dtype, count):
    error = (got.cpu().double() - wanted).abs()
    # Each rank's product, and each sum of them, is rounded once; they are larger than what they may add up to.
    bound = (wanted.abs() + 16 * count) * (2**-8 if dtype == torch.bfloat16 else 2**-11) * count
    assert got.dtype == dtype and got.shape == wanted.shape, what
    assert (error <= bound).all(), f"{what}: error {error.max()}"


def integers(rank, shape, salt):
    return torch.randint(-9, 10, shape, generator=torch.Generator().manual_seed(100 * rank + salt), dtype=torch.int8)


def quantised(rank, count, name):
    """Products of integers, and of a matrix of integers that is widened, summed over the ranks."""
    scale, row_scale = torch.rand(24).float() / 64, torch.rand(16).float() / 8
    x, weight = [integers(i, (16, 48), 4) for i in range(count)], [integers(i, (48, 24), 5) for i in range(count)]
    bias = integers(0, (24,), 6).to(torch.int32)
    wide = values(rank, (16, 48), torch.float16, 7)

    def step():
        exact = torch_npu.npu_mm_all_reduce_base(
            x[rank].npu(), weight[rank].npu(), name, bias=bias.npu(), dequant_scale=scale.npu(),
            pertoken_scale=row_scale.npu())
        widened = torch_npu.npu_mm_all_reduce_base(
            wide.npu(), weight[rank].npu(), name, antiquant_scale=scale.half().npu(),
            antiquant_offset=torch.full((24,), 2.0).half().npu())
        below = torch_npu.npu_quant_matmul_all_to_all(
            x[rank].npu(), weight[rank].npu(), name, count, bias=beside.npu(), x1_scale=row_scale.npu(),
            x2_scale=scale.npu(), x1_quant_mode=3, x2_quant_mode=2, y_dtype=torch.float16)
        parts, came = torch_npu.npu_all_to_all_quant_matmul(
            wide.npu(), torch.cat([weight[rank]] * count).npu(), name, count, bias=beside.npu(), x2_scale=scale.npu(),
            x1_quant_mode=7, x2_quant_mode=2, y_dtype=torch.float16)
        torch_npu._npu_distribute_barrier(x_ref=below, group=name, world_size=count)
        return exact, widened, below, parts, came

    beside = values(0, (24,), torch.float32, 8)
    exact, widened, below, parts, came = step()
    products = [a.double() @ b.double() * row_scale.double().unsqueeze(1) * scale.double() + beside.double()
                for a, b in zip(x, weight, strict=True)]
    expect("columns of integers", below, torch.cat([one.chunk(count, 1)[rank] for one in products]), torch.float16,
           count)
    rows = torch.cat([values(i, (16, 48), torch.float16, 7).chunk(count)[rank] for i in range(count)], 1)
    assert torch.equal(came.cpu(), rows)
    step_of_row = rows.double().abs().amax(1, keepdim=True) / 127
    whole = (rows.double() / step_of_row).round() @ torch.cat([weight[rank]] * count).double()
    expect("parts as integers", parts, whole * step_of_row * scale.double() + beside.double(), torch.float16, count)
    sums = sum((a.double() @ b.double() + bias.double()) for a, b in zip(x, weight, strict=True))
    expect("integers", exact, sums * scale.double() * row_scale.double().unsqueeze(1), exact.dtype, count)
    sums = sum(values(i, (16, 48), torch.float16, 7).double() @ ((weight[i].double() + 2) * scale.half().double())
               for i in range(count))
    expect("widened", widened, sums, torch.float16, count)


def fused(rank, count):
    # The group has no collective of HCCL, so that these products alone tell of it.
    group = dist.distributed_c10d._get_default_group()
    name = group._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
    quantised(rank, count, name)
    for dtype in (torch.float16, torch.bfloat16):
        for transposed in (False, True):
            shape = (24, 48) if transposed else (48, 24)
            weights = [values(i, shape, dtype, 2) for i in range(count)]
            if transposed:
                weights = [weight.t() for weight in weights]
            rows = [values(i, (16, 48), dtype, 1) for i in range(count)]
            sums = [x.double() @ weight.double() for x, weight in zip(rows, weights, strict=True)]
            x = rows[rank].npu()
            weight = weights[rank].t().npu().t() if transposed else weights[rank].npu()
            bias = values(rank, (24,), dtype, 3).npu()
            biases = sum(values(i, (24,), dtype, 3).double() for i in range(count))

            def step(x=x, weight=weight, bias=bias):
                total = torch_npu.npu_mm_all_reduce_base(x, weight, name, reduce_op="sum", bias=bias)
                product, gathered = torch_npu.npu_all_gather_base_mm(x, weight, name, count, gather_output=True)
                part = torch_npu.npu_mm_reduce_scatter_base(x, weight, name, count, reduce_op="sum")
                below = torch_npu.npu_matmul_all_to_all(x, weight, name, count)
                beside, came = torch_npu.npu_all_to_all_matmul(x, torch.cat([weight] * count), name, count)
                return total * 2, product, gathered, part, below, beside, came

            results = ranks.run_graph(step) if ranks.argument(2, "") == "graph" else step()
            total, product, gathered, part, below, beside, came = results
            expect("all reduce", total, 2 * (sum(sums) + biases), dtype, count)
            expect("all gather", product, torch.cat(rows).double() @ weights[rank].double(), dtype, count)
            assert torch.equal(gathered.cpu(), torch.cat(rows))
            expect("reduce scatter", part, sum(sums).chunk(count)[rank], dtype, count)
            expect("columns of all", below, torch.cat([one.chunk(count, 1)[rank] for one in sums]), dtype, count)
            parts = torch.cat([one.chunk(count)[rank] for one in rows], 1)
            assert torch.equal(came.cpu(), parts)
            expect("parts of all", beside, parts.double() @ torch.cat([weights[rank]] * count).double(), dtype, count)


if __name__ == "__main__":
    ranks.run(fused, int(ranks.argument(1, "2")))
