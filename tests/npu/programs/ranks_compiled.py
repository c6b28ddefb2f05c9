"""Collectives in what torch.compile compiles: ranks_compiled.py npugraph_ex|torchair [ranks].

Each step is compiled for graphs (torchair in its mode reduce-overhead) and called three times with other data; the
results are those of the same step without compiling, bit for bit.
"""
import ranks
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional


def all_reduce(x, w):
    return functional.all_reduce(x @ w, "sum", dist.group.WORLD).relu()


def in_place(x, w):
    y = x @ w
    dist.all_reduce(y)
    return y + 1


def gather_and_scatter(x, w):
    rows = functional.all_gather_tensor(x, 0, dist.group.WORLD)
    return functional.reduce_scatter_tensor(rows @ w, "sum", 0, dist.group.WORLD) * 2


def all_to_all(x, w):
    given = (x @ w).flatten()  # npugraph_ex gives the adapter's operator counts of elements, which takes rows
    taken = torch.empty_like(given)
    dist.all_to_all_single(taken, given)
    return taken - given


def functional_all_to_all(x, w):
    taken = functional.all_to_all_single((x @ w).flatten(), None, None, dist.group.WORLD)
    return taken.tanh()


def two_groups(x, w):
    first = functional.all_reduce(x @ w, "sum", dist.group.WORLD)
    return functional.all_reduce(first.relu(), "max", other_group)


def broadcast(x, w):
    y = x @ w
    dist.broadcast(y, 0)
    return y.abs()


def all_gather_list(x, w):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return torch.cat(parts) @ w


STEPS = (all_reduce, in_place, gather_and_scatter, all_to_all, functional_all_to_all, two_groups, broadcast,
         all_gather_list)


def backend_of(name):
    if name == "npugraph_ex":
        return name
    from torch_npu.dynamo import torchair
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    return torchair.get_npu_backend(compiler_config=config)


def compiled_steps(rank, count, name):
    global other_group
    other_group = dist.new_group(list(range(count)))
    if name == "torchair":
        from torch_npu.dynamo import torchair
        torchair.patch_for_hcom()
    weight = torch.randn(16, 16).npu()
    for step in STEPS:
        torch._dynamo.reset()
        compiled = torch.compile(step, backend=backend_of(name), dynamic=False, fullgraph=True)
        with torch.no_grad():
            for i in range(3):
                x = torch.randn(4 * count, 16, generator=torch.Generator().manual_seed(10 * i + rank)).npu()
                expected = step(x, weight).cpu()
                got = compiled(x, weight).cpu()
                assert torch.equal(got, expected), f"{step.__name__}, call {i} on rank {rank}"
        if rank == 0:
            print(step.__name__, flush=True)


if __name__ == "__main__":
    ranks.run(compiled_steps, int(ranks.argument(2, "2")), ranks.argument(1, "npugraph_ex"))
