"""A task group is updated with another number of kernels than it has. The update fails, so that nothing records the
event for which the graph waits. The program ends without any further wait.
"""
import torch
import torch_npu
from torch_npu.npu import (graph_task_group_begin, graph_task_group_end, graph_task_update_begin,
                           graph_task_update_end)

HALF = dict(device="npu", dtype=torch.float16)
OPTIONS = dict(num_heads=2, input_layout="BSND", scale=32 ** -0.5, num_key_value_heads=2)
query, keys = torch.ones(1, 1, 2, 32, **HALF), torch.ones(1, 32, 2, 32, **HALF)
space = torch_npu._npu_fused_infer_attention_score_get_max_workspace(query, keys, keys, actual_seq_lengths_kv=[32],
                                                                    **OPTIONS)
results = [torch.empty_like(query), torch.empty(1, **HALF)]
updating, ready, graph = torch.npu.Stream(), torch.npu.ExternalEvent(), torch.npu.NPUGraph()


def attend(length):
    torch_npu.npu_fused_infer_attention_score.out(query, keys, keys, actual_seq_lengths_kv=[length], workspace=space,
                                                  **OPTIONS, out=results)


with torch.npu.graph(graph):
    stream = torch.npu.current_stream()
    ready.wait(stream)
    ready.reset(stream)
    graph_task_group_begin(stream)
    attend(1)
    group = graph_task_group_end(stream)
graph.replay()
try:
    with torch.npu.stream(updating):
        graph_task_update_begin(updating, group)
        attend(5)
        attend(6)
        graph_task_update_end(updating)
        ready.record(updating)
        updating.synchronize()
except RuntimeError:
    print("the update failed", flush=True)
