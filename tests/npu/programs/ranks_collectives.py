"""Collectives and messages through torch.distributed: ranks_collectives.py [ranks]. The sums are the CPU's."""
import ranks
import torch
import torch.distributed as dist
import torch_npu

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int16, torch.int8)


def of(rank, count, dtype):
    """What a rank gives: small integers, which every dtype adds up exactly."""
    return (torch.arange(count) % 3 + rank).to(dtype)


def check(name, seen, wanted):
    if not torch.equal(seen.cpu(), wanted.cpu()):
        raise AssertionError(f"rank {dist.get_rank()}, {name}: {seen.cpu().flatten()[:8]}, not {wanted.flatten()[:8]}")


def over_dtypes(rank, ranks_):
    everyone = range(ranks_)
    for dtype in DTYPES:
        for size in (1, 5, 1000, 100003):
            name = f"{dtype}, {size}"
            own, total = of(rank, size, dtype), sum(of(r, size, torch.int64) for r in everyone).to(dtype)
            data = own.npu()
            dist.all_reduce(data)
            check(f"all_reduce {name}", data, total)
            gathered = [torch.empty_like(data) for _ in everyone]
            dist.all_gather(gathered, own.npu())
            for other in everyone:
                check(f"all_gather {name}", gathered[other], of(other, size, dtype))
            part = torch.empty_like(data)
            dist.reduce_scatter_tensor(part, torch.cat([own] * ranks_).npu())
            check(f"reduce_scatter {name}", part, total)
            data = own.npu()
            dist.broadcast(data, ranks_ - 1)
            check(f"broadcast {name}", data, of(ranks_ - 1, size, dtype))
            given = torch.cat([own + i for i in everyone]).npu()
            taken = torch.empty_like(given)
            dist.all_to_all_single(taken, given)
            check(f"all_to_all {name}", taken, torch.cat([of(r, size, dtype) + rank for r in everyone]))
            data = own.npu()
            dist.reduce(data, 1)
            if rank == 1:
                check(f"reduce {name}", data, total)


def uneven(rank, ranks_):
    sent = [(rank + to) % 3 + 1 for to in range(ranks_)]
    taken = [(source + rank) % 3 + 1 for source in range(ranks_)]
    given = torch.cat([torch.full((n,), float(10 * rank + to)) for to, n in enumerate(sent)]).npu()
    result = torch.empty(sum(taken), device="npu")
    dist.all_to_all_single(result, given, taken, sent)
    check("uneven all_to_all", result,
          torch.cat([torch.full((n,), float(10 * source + rank)) for source, n in enumerate(taken)]))
    parts = [torch.empty(r + 1, device="npu") for r in range(ranks_)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)).npu())
    for other, part in enumerate(parts):
        check("uneven all_gather", part, torch.full((other + 1,), float(other)))


def messages(rank, ranks_):
    data, taken = torch.full((3,), float(rank)).npu(), torch.empty(3, device="npu")
    after, before = (rank + 1) % ranks_, (rank - 1) % ranks_
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, data, after), dist.P2POp(dist.irecv, taken, before)]):
        work.wait()
    check("batch", taken, torch.full((3,), float(before)))
    if rank == 0:
        dist.send(data + 7, 1)
    elif rank == 1:
        dist.recv(taken, 0)
        check("recv", taken, torch.full((3,), 7.0))
    objects = [None] * ranks_
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(ranks_)], objects


def groups_and_operations(rank, ranks_):
    group = dist.new_group([0, 1])
    if rank < 2:
        data = torch.ones(4).npu()
        dist.all_reduce(data, group=group)
        check("part of the ranks", data, torch.full((4,), 2.0))
    operations = {dist.ReduceOp.MAX: ranks_, dist.ReduceOp.MIN: 1, dist.ReduceOp.AVG: (ranks_ + 1) / 2}
    for operation, wanted in operations.items():
        data = torch.full((5,), float(rank + 1)).npu()
        dist.all_reduce(data, op=operation)
        check(str(operation), data, torch.full((5,), float(wanted)))
    flags = torch.tensor([rank == 0, False]).npu()
    dist.all_reduce(flags)
    check("bool", flags, torch.tensor([True, False]))
    work = dist.all_reduce(data, async_op=True)
    work.wait()
    with dist._coalescing_manager(device=torch.device("npu", rank)):
        a, b = torch.ones(4).npu(), torch.ones(6).npu()
        dist.all_reduce(a)
        dist.all_reduce(b)
    torch.npu.synchronize()
    check("coalesced", torch.cat([a, b]), torch.full((10,), float(ranks_)))
    dist.barrier()


def blocks(rank, ranks_):
    """Matrices that lie in blocks (FRACTAL_NZ, 29), which the adapter puts one after the other for an all_to_all."""
    torch.npu.config.allow_internal_format = True
    whole = torch.arange(32 * 48).reshape(32, 48) % 251
    given = [torch_npu.npu_format_cast((whole + 100 * rank + 10 * i).half().npu(), 29) for i in range(ranks_)]
    assert torch_npu.get_npu_format(given[0]) == 29
    taken = [torch_npu.npu_format_cast(torch.zeros(32, 48).half().npu(), 29) for _ in range(ranks_)]
    dist.all_to_all(taken, given)
    for other in range(ranks_):
        check("all_to_all of blocks", taken[other], (whole + 100 * other + 10 * rank).half())


def everything(rank, ranks_):
    for part in (over_dtypes, uneven, messages, groups_and_operations, blocks):
        part(rank, ranks_)


if __name__ == "__main__":
    ranks.run(everything, int(ranks.argument(1, "2")))
