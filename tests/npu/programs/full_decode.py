"""A decoder as inference engines run it on an NPU: a graph per batch size in one pool, input buffers that all graphs
share, attention in task groups that a second stream updates, tokens that come to the host on a third stream and go into
the next step without it, and many streams. A batch is padded to the size of its graph. Only the steps are recorded.
"""
import os
import sys

import torch
import torch_npu
from torch_npu.npu import (graph_task_group_begin, graph_task_group_end, graph_task_update_begin,
                           graph_task_update_end)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "python"))
import acltape

SIZES, BATCHES = (1, 2, 4), (1, 2, 3, 4, 3, 2, 1, 2, 4, 4, 3)
LAYERS, HEADS, WIDTH, WORDS, LENGTH, SEQUENCES = 2, 2, 32, 64, 32, 8
HIDDEN = HEADS * WIDTH
HALF = dict(device="npu", dtype=torch.float16)
OPTIONS = dict(num_heads=HEADS, input_layout="BSND", scale=WIDTH ** -0.5, num_key_value_heads=HEADS)


class Shared:
    """A tensor on the device that pinned memory of the host fills."""

    def __init__(self):
        self.host = torch.zeros(SEQUENCES, dtype=torch.int64).pin_memory()
        self.device = torch.zeros(SEQUENCES, dtype=torch.int64, device="npu")

    def fill(self, numbers):
        self.host[:len(numbers)] = torch.tensor(numbers)
        self.device[:len(numbers)].copy_(self.host[:len(numbers)], non_blocking=True)


class Decoder:
    def __init__(self):
        self.words = torch.randn(WORDS, HIDDEN, **HALF)
        self.inward = [torch.randn(HIDDEN, 3 * HIDDEN, **HALF) * HIDDEN ** -0.5 for _ in range(LAYERS)]
        self.outward = [torch.randn(HIDDEN, HIDDEN, **HALF) * HIDDEN ** -0.5 for _ in range(LAYERS)]
        self.head = torch.randn(HIDDEN, WORDS, **HALF)
        self.keys, self.values = ([torch.zeros(SEQUENCES, LENGTH, HEADS, WIDTH, **HALF) for _ in range(LAYERS)]
                                  for _ in range(2))
        angle = torch.outer(torch.arange(LENGTH).float(), 10000.0 ** (-torch.arange(0, WIDTH, 2).float() / WIDTH))
        self.angles = torch.cat([angle.cos(), angle.sin()], -1).half().npu()

    def turned(self, x, cosine, sine):
        one, two = x.chunk(2, -1)
        return torch.cat([one * cosine - two * sine, two * cosine + one * sine], -1)

    def __call__(self, words, positions, slots, attend):
        count = len(words)
        x = self.words.index_select(0, words)
        cosine, sine = self.angles.index_select(0, positions).unsqueeze(1).chunk(2, -1)
        for layer in range(LAYERS):
            query, key, value = (x @ self.inward[layer]).view(count, 3, HEADS, WIDTH).unbind(1)
            query, key = self.turned(query, cosine, sine), self.turned(key, cosine, sine)
            self.keys[layer].view(-1, HEADS, WIDTH).index_copy_(0, slots, key)
            self.values[layer].view(-1, HEADS, WIDTH).index_copy_(0, slots, value)
            mixed = attend(query.contiguous().unsqueeze(1), self.keys[layer][:count], self.values[layer][:count])
            x = x + mixed.reshape(count, HIDDEN) @ self.outward[layer]
        return x


class Engine:
    def __init__(self):
        self.model = Decoder()
        self.words, self.positions, self.slots = Shared(), Shared(), Shared()
        self.lengths = [0] * SEQUENCES
        self.updating, self.copying = torch.npu.Stream(), torch.npu.Stream()
        self.others = [torch.npu.Stream() for _ in range(31)]
        self.prepared = torch.npu.Event()
        self.updates = {size: [] for size in SIZES}
        self.sampled, self.pending, self.replies = None, [], [[] for _ in range(SEQUENCES)]
        pool = torch.npu.graph_pool_handle()
        self.graphs = {size: self.captured(size, pool) for size in reversed(SIZES)}
        self.prepared.record()

    def attend(self, query, keys, values):
        return torch_npu.npu_fused_infer_attention_score(
            query, keys, values, actual_seq_lengths_kv=[1] * len(query), **OPTIONS)[0]

    def attend_in_group(self, query, keys, values):
        stream, size = torch.npu.current_stream(), len(query)
        ready = torch.npu.ExternalEvent()
        ready.wait(stream)
        ready.reset(stream)
        space = torch_npu._npu_fused_infer_attention_score_get_max_workspace(
            query, keys, values, actual_seq_lengths_kv=[LENGTH] * size, **OPTIONS)
        out, sums = torch.empty_like(query), torch.empty(1, **HALF)

        def launch(lengths):
            torch_npu.npu_fused_infer_attention_score.out(
                query, keys, values, actual_seq_lengths_kv=lengths, workspace=space, out=[out, sums], **OPTIONS)

        graph_task_group_begin(stream)
        launch([1] * size)
        self.updates[size].append((graph_task_group_end(stream), ready, launch))
        return out

    def captured(self, size, pool):
        inputs = [shared.device[:size] for shared in (self.words, self.positions, self.slots)]
        self.model(*inputs, self.attend)
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            return graph, self.model(*inputs, self.attend_in_group)

    def step(self, count):
        size = next(size for size in SIZES if size >= count)
        self.prepared.synchronize()
        self.words.fill([(3 * i + 1) % WORDS for i in range(count)])
        self.positions.fill(self.lengths[:count])
        self.slots.fill([i * LENGTH + self.lengths[i] for i in range(count)] +
                        [(i + 1) * LENGTH - 1 for i in range(count, size)])
        if self.sampled is not None:
            known = min(count, len(self.sampled))
            self.words.device[:known].copy_(self.sampled[:known])
        self.prepared.record()
        angles = self.model.angles.index_select(0, self.positions.device[:size])
        for i in range(4):
            with torch.npu.stream(self.others[(count + i) % len(self.others)]):
                stream = torch.npu.current_stream()
                stream.wait_event(self.prepared)
                (self.positions.device[:size] + i).sum()
                over = stream.record_event()
            torch.npu.current_stream().wait_event(over)
        torch.npu.current_stream().synchronize()
        graph, result = self.graphs[size]
        graph.replay()
        self.update(size, count)
        self.sampled = ((result[:count] + angles[:count].repeat(1, HEADS)) @ self.model.head).argmax(-1)
        self.copy_to_host()
        for i in range(count):
            self.lengths[i] += 1
        if len(self.pending) > 1:
            self.take()

    def update(self, size, count):
        lengths = [self.lengths[i] + 1 if i < count else 1 for i in range(size)]
        with torch.npu.stream(self.updating):
            for group, ready, launch in self.updates[size]:
                graph_task_update_begin(self.updating, group)
                launch(lengths)
                graph_task_update_end(self.updating)
                ready.record(self.updating)

    def copy_to_host(self):
        sampled = torch.npu.current_stream().record_event()
        with torch.npu.stream(self.copying):
            self.copying.wait_event(sampled)
            tokens = torch.empty(len(self.sampled), dtype=torch.int64).pin_memory()
            tokens.copy_(self.sampled, non_blocking=True)
            self.sampled.record_stream(self.copying)
            self.pending.append((self.copying.record_event(), tokens))

    def take(self):
        copied, tokens = self.pending.pop(0)
        copied.synchronize()
        for reply, token in zip(self.replies, tokens.tolist()):
            reply.append(token)


def main():
    torch.manual_seed(0)
    engine = Engine()
    torch.npu.synchronize()
    with acltape.window():
        for count in BATCHES:
            engine.step(count)
        torch.npu.synchronize()
    while engine.pending:
        engine.take()
    print(engine.replies)


if __name__ == "__main__":
    with torch.no_grad():
        main()
