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


def fused(rank, count):
    # The group has no collective of HCCL, so that these products alone tell of it.
    group = dist.distributed_c10d._get_default_group()
    name = group._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
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
                return total * 2, product, gathered, part

            if ranks.argument(2, "") == "graph":
                step()
                torch.npu.synchronize()
                graph = torch.npu.NPUGraph()
                with torch.npu.graph(graph):
                    results = step()
                for _ in range(3):
                    graph.replay()
            else:
                results = step()
            total, product, gathered, part = results
            expect("all reduce", total, 2 * (sum(sums) + biases), dtype, count)
            expect("all gather", product, torch.cat(rows).double() @ weights[rank].double(), dtype, count)
            assert torch.equal(gathered.cpu(), torch.cat(rows))
            expect("reduce scatter", part, sum(sums).chunk(count)[rank], dtype, count)


if __name__ == "__main__":
    ranks.run(fused, int(ranks.argument(1, "2")))
