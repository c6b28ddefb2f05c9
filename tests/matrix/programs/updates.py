"""Attention in a graph whose lengths change at each token: its task group is updated from a second stream."""
import torch
import torch_npu
from torch_npu.npu import (graph_task_group_begin, graph_task_group_end, graph_task_update_begin,
                           graph_task_update_end)

BATCH, HEADS, LENGTH, WIDTH = 2, 2, 32, 32


def main():
    torch.manual_seed(0)
    shape = dict(device="npu", dtype=torch.float16)
    query = torch.randn(BATCH, HEADS, 1, WIDTH, **shape)
    keys, values = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, **shape) for _ in range(2))
    out, sums = torch.empty_like(query), torch.empty(1, **shape)
    options = dict(num_heads=HEADS, input_layout="BNSD", scale=WIDTH ** -0.5)
    workspace = torch_npu._npu_fused_infer_attention_score_get_max_workspace(
        query, keys, values, actual_seq_lengths_kv=[LENGTH] * BATCH, **options)

    def attend(length):
        torch_npu.npu_fused_infer_attention_score.out(
            query, keys, values, actual_seq_lengths_kv=[length] * BATCH, workspace=workspace, out=[out, sums],
            **options)

    updating, updated = torch.npu.Stream(), torch.npu.ExternalEvent()
    attend(4)
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        stream = torch.npu.current_stream()
        updated.wait(stream)
        updated.reset(stream)
        graph_task_group_begin(stream)
        attend(4)
        group = graph_task_group_end(stream)
        result = out * 2
    total = 0.0
    for length in (4, 9, 17, 25, 30, 32):
        query.add_(0.125)
        graph.replay()
        with torch.npu.stream(updating):
            graph_task_update_begin(updating, group)
            attend(length)
            graph_task_update_end(updating)
            updated.record(updating)
        total += result.float().sum().item()
    print(f"total {total:.3f}")


if __name__ == "__main__":
    main()
