"""Collectives in captured graphs, of two communicators that each rank begins in another order:
ranks_graphs.py [ranks]. Each replay gives what the eager calls give."""
import ranks
import torch
import torch.distributed as dist


def replay(rank, count):
    second = dist.new_group(list(range(count)))
    weight, data = torch.randn(16, 16).npu(), torch.zeros(4, 16).npu()

    def forward():
        hidden = data @ weight + rank
        dist.all_reduce(hidden)
        gathered = torch.empty(4 * count, 16, device="npu")
        dist.all_gather_into_tensor(gathered, hidden * (rank + 1))
        a, b = hidden.clone(), hidden * 2
        calls = [(a, None), (b, second)]
        works = [dist.all_reduce(tensor, group=group, async_op=True)
                 for tensor, group in (calls if rank % 2 == 0 else reversed(calls))]
        for work in works:
            work.wait()
        part = torch.empty(4, 16, device="npu")
        dist.reduce_scatter_tensor(part, gathered)
        moved = torch.empty_like(gathered)
        dist.all_to_all_single(moved, gathered)
        dist.broadcast(part, 0)
        return a + b + part, moved

    forward()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        captured = forward()
    for step in range(10):
        torch.manual_seed(step)
        data.copy_(torch.randn(4, 16) * (rank + 1))
        graph.replay()
        seen = [tensor.clone() for tensor in captured]
        for one, other in zip(seen, forward(), strict=True):
            assert torch.equal(one, other), f"rank {rank}, step {step}"


if __name__ == "__main__":
    ranks.run(replay, int(ranks.argument(1, "2")))
