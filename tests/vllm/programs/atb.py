"""Calls the operators of torch.ops.atb on the device and compares them with formulas of float64.

Prints a line for each operator that is equal, and the last one, "equal", when all are. `--refused` calls those
that the soft device refuses instead, and prints what the adapter raises.
"""
import sys

import torch
import torch_npu  # noqa: F401  (brings torch.ops.atb)

SCALE = 0.4
atb = torch.ops.atb


def attend(query, key, value, added=0.0):
    """Attention of one sequence: rows of [tokens, heads, width]; `added` broadcasts to [heads, queries, keys]."""
    query, key, value = (rows.double().transpose(0, 1) for rows in (query, key, value))
    sharing = query.shape[0] // key.shape[0]
    key, value = (rows.repeat_interleave(sharing, 0) for rows in (key, value))
    scores = query @ key.transpose(1, 2) * SCALE + added
    return (torch.softmax(scores, -1) @ value).transpose(0, 1)


def left_out(queries, keys):
    """The mask of queries that see the keys up to their own place, which ends with the last."""
    return torch.full((queries, keys), float("-inf")).double().triu(keys - queries + 1)


class Sequences:
    """Keys and values in blocks of 4 rows, of which each sequence has some; the last is filled in part."""

    def __init__(self, dtype, key_heads=2, width=8, lengths=(5, 8, 1)):
        self.keys = torch.randn(6, 4, key_heads, width).to(dtype)
        self.values = torch.randn(6, 4, key_heads, 8).to(dtype)
        self.table = torch.tensor([[4, 1], [0, 3], [2, 5]], dtype=torch.int32)
        self.lengths = list(lengths)

    def seen(self, i):
        blocks = self.table[i].long()
        return [cache[blocks].flatten(0, 1)[:self.lengths[i]] for cache in (self.keys, self.values)]

    def expect(self, query, counts, added):
        rows, first = [], 0
        for i, count in enumerate(counts):
            rows.append(attend(query[first:first + count], *self.seen(i), added(i, first, count)))
            first += count
        return torch.cat(rows)

    def caches(self):
        return self.keys.npu(), self.values.npu()


def no_mask(*_):
    return 0.0


def numbers(lengths):
    return torch.tensor(lengths, dtype=torch.int32)


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def paged_attention():
    for dtype in (torch.float16, torch.bfloat16):
        given, query = Sequences(dtype), torch.randn(3, 4, 8).to(dtype)
        out, again = (torch.empty_like(query).npu() for _ in range(2))
        arguments = (query.npu(), *given.caches(), 2, 4, SCALE, given.table.npu(), numbers(given.lengths))
        atb._npu_paged_attention(*arguments, out)
        workspace = atb._npu_paged_attention_get_workspace(*arguments, again)
        atb._npu_paged_attention(*arguments, again, workspace=workspace)
        expected = given.expect(query, (1, 1, 1), no_mask)
        yield out, expected
        yield again, expected


@case
def paged_attention_mla():
    given, query = Sequences(torch.bfloat16, key_heads=1, width=12), torch.randn(3, 4, 12).bfloat16()
    out = torch.empty(3, 4, 8).bfloat16().npu()
    atb._npu_paged_attention_mla(query.npu(), given.keys.npu(), 1, 4, SCALE, given.table.npu(),
                                 numbers(given.lengths), 8, out)
    given.values = given.keys[..., :8]
    yield out, given.expect(query, (1, 1, 1), no_mask)


@case
def paged_attention_v2():
    given, query = Sequences(torch.float16), torch.randn(3, 4, 8).half()
    mask = torch.randn(3, 4, 1, 8).half()
    for kind, tensor in ((0, None), (2, mask)):
        out = torch.empty_like(query).npu()
        keys, values = given.caches()
        atb._npu_paged_attention_v2(query.npu(), keys, given.table.npu(), given.lengths, value_cache=values,
                                    mask=tensor if tensor is None else tensor.npu(), num_kv_heads=2, num_heads=4,
                                    scale_value=SCALE, mask_type=kind, out=out)
        yield out, given.expect(query, (1, 1, 1),
                                no_mask if kind == 0 else lambda i, *_: mask[i, ..., :given.lengths[i]].double())


@case
def paged_attention_splitfuse():
    counts = [3, 1, 1]
    for dtype in (torch.float16, torch.bfloat16):
        given, query = Sequences(dtype, lengths=(5, 8, 2)), torch.randn(5, 4, 8).to(dtype)
        mask = torch.zeros(5, 8).double()
        mask[:3, :5] = left_out(3, 5)
        mask[1, 0] = float("-inf")
        for version in (1, 2):
            out = torch.empty_like(query).npu()
            triangle = torch.full((2048, 2048), -60000.0).half().triu(1).npu()
            arguments = (query.npu(), *given.caches(), given.table.npu(), numbers(given.lengths),
                         mask.clamp(-10000).to(dtype).npu() if version == 1 else triangle, numbers(counts), 2, 4,
                         SCALE)
            if version == 1:
                atb._npu_paged_attention_splitfuse(*arguments, out)
                added = lambda i, first, count, mask=mask, given=given: mask[first:first + count, :given.lengths[i]]
            else:
                atb._npu_paged_attention_splitfuse_v2(*arguments, out=out)
                added = lambda i, _, count, given=given: left_out(count, given.lengths[i])
            yield out, given.expect(query, counts, added)


def packed(dtype, lengths, added):
    """Queries, keys and values of sequences that follow each other, and their attention."""
    query, key, value = (torch.randn(sum(lengths), heads, 8).to(dtype) for heads in (4, 2, 2))
    rows, first = [], 0
    for i, count in enumerate(lengths):
        own = slice(first, first + count)
        rows.append(attend(query[own], key[own], value[own], added(i, count)))
        first += count
    return (query.npu(), key.npu(), value.npu()), torch.cat(rows)


@case
def flash_attention():
    lengths = [2, 4, 1]
    for dtype, sign in ((torch.float16, float("-inf")), (torch.bfloat16, 1.0)):
        mask = torch.full((6, 6), sign).triu(1).to(dtype).npu()
        rows, expected = packed(dtype, lengths, lambda _, count: left_out(count, count))
        out, second = (torch.empty_like(rows[0]) for _ in range(2))
        atb._npu_flash_attention(*rows, mask, numbers(lengths), SCALE, 4, 2, out)
        yield out, expected
        atb._npu_flash_attention_v2(*rows, lengths, mask=mask, mask_type=1, scale_value=SCALE, num_heads=4,
                                    num_kv_heads=2, out=second)
        yield second, expected


@case
def flash_attention_without_a_mask():
    rows, expected = packed(torch.float16, [2, 4, 1], no_mask)
    out, second = (torch.empty_like(rows[0]) for _ in range(2))
    atb._npu_flash_attention_unpad(*rows, numbers([2, 4, 1]), SCALE, 4, 2, out)
    yield out, expected
    atb._npu_flash_attention_unpad_v2(*rows, numbers([2, 4, 1]), SCALE, 4, 2, out=second)
    yield second, expected


@case
def flash_attention_with_slopes():
    mask = torch.randn(4, 6, 6) + torch.full((6, 6), float("-inf")).triu(1)
    mask = mask.half()
    rows, expected = packed(torch.float16, [2, 4], lambda _, count: mask[:, :count, :count].double())
    out = torch.empty_like(rows[0])
    atb._npu_flash_attention_v2(*rows, [2, 4], mask=mask.npu(), mask_type=2, scale_value=SCALE, num_heads=4,
                                num_kv_heads=2, out=out)
    yield out, expected


@case
def flash_attention_v3():
    rows, expected = packed(torch.float16, [2, 4], lambda _, count: left_out(count, count))
    out, mask = torch.empty_like(rows[0]), torch.full((128, 128), float("-inf")).half().triu(1).npu()
    atb._npu_flash_attention_v3(*rows, mask, numbers([2, 4]), SCALE, 4, 2, out=out)
    yield out, expected


@case
def flash_attention_after_a_prefix():
    counts = [3, 1, 2]
    given, query = Sequences(torch.bfloat16, lengths=(5, 8, 2)), torch.randn(6, 4, 8).bfloat16()
    expected = given.expect(query, counts, lambda i, _, count: left_out(count, given.lengths[i]))
    mask = torch.ones(128, 128).bfloat16().triu(1).npu()
    out, second = (torch.empty_like(query).npu() for _ in range(2))
    atb._npu_flash_attention_qlens(query.npu(), *given.caches(), given.table.npu(), mask, numbers(counts),
                                   numbers(given.lengths), 2, 4, SCALE, out)
    yield out, expected
    atb._npu_flash_attention_prefix_v2(query.npu(), *given.caches(), given.table.npu(), mask, counts, given.lengths,
                                       num_kv_heads=2, num_heads=4, scale_value=SCALE, out=second)
    yield second, expected


@case
def group_topk():
    for n in (1, 2):
        scores = torch.randn(5, 12).half()
        groups = scores.double().reshape(5, 4, 3).topk(n).values.sum(-1)
        kept = torch.zeros(5, 4).scatter(1, groups.topk(2).indices, 1).repeat_interleave(3, 1)
        given = scores.npu()
        atb._npu_group_topk(given, k=2, group_num=4, n=n)
        yield given, scores.double() * kept


@case
def quantize_per_tensor():
    x, scale = torch.randn(3, 4, 6).half(), (torch.rand(4, 6) + 0.1).half()
    offset, out = torch.randint(-10, 10, (4, 6), dtype=torch.int8), torch.empty(3, 4, 6, dtype=torch.int8).npu()
    atb._npu_quantize_per_tensor(x.npu(), scale.npu(), offset.npu(), out)
    yield out, ((x / scale).double().round() + offset).clamp(-128, 127)


@case
def quant_rms_norm():
    x, gamma, beta = torch.randn(4, 1, 128).half(), torch.randn(1, 128).half(), torch.randn(1, 128).half()
    scale, offset = torch.tensor([0.3]).half(), torch.tensor([2], dtype=torch.int8)
    out = torch.empty(4, 1, 128, dtype=torch.int8).npu()
    atb._npu_quant_rms_norm(x.npu(), gamma.npu(), beta.npu(), scale.npu(), offset.npu(), out, eps=1e-5)
    wide = x.double()
    normalized = wide / (wide.square().mean(-1, True) + 1e-5).sqrt() * gamma + beta
    yield out, (normalized / scale.double() + 2).round().clamp(-128, 127)


@case
def reshape_and_cache_siso():
    key, cache = torch.randn(2, 1, 8).half(), torch.zeros(3, 4, 1, 8).half()
    given = cache.npu()
    atb._npu_reshape_and_cache_siso(key.npu(), given, numbers([9, 0]).npu())
    cache[2, 1], cache[0, 0] = key[0], key[1]
    yield given, cache


@case
def paged_attention_in_a_graph():
    given, query = Sequences(torch.float16), torch.randn(3, 4, 8).half()
    keys, values = given.caches()
    on_device, table, out = query.npu(), given.table.npu(), torch.zeros_like(query).npu()
    lengths = numbers(given.lengths)
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        atb._npu_paged_attention(on_device, keys, values, 2, 4, SCALE, table, lengths, out)
    given.keys = torch.randn_like(given.keys)
    keys.copy_(given.keys)
    for _ in range(2):
        query = torch.randn_like(query)
        on_device.copy_(query)
        graph.replay()
        yield out, given.expect(query, (1, 1, 1), no_mask)


@case
def paged_attention_updated_in_a_graph():
    """As vLLM's plug-in does it: the lengths of each step are those of an update of the captured task."""
    given, query = Sequences(torch.float16), torch.randn(3, 4, 8).half()
    keys, values = given.caches()
    out = torch.zeros_like(query).npu()
    arguments = (query.npu(), keys, values, 2, 4, SCALE, given.table.npu())
    workspace = atb._npu_paged_attention_get_workspace(*arguments, numbers(given.lengths), out)
    torch.npu.synchronize()
    graph, event = torch.npu.NPUGraph(), torch.npu.ExternalEvent()
    with torch.npu.graph(graph):
        stream = torch.npu.current_stream()
        event.wait(stream)
        event.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        atb._npu_paged_attention(*arguments, numbers(given.lengths), out, workspace=workspace)
        handle = torch.npu.graph_task_group_end(stream)
    updates = torch.npu.Stream()
    for lengths in ([5, 8, 1], [3, 6, 7]):
        graph.replay()
        with torch.npu.stream(updates):
            torch.npu.graph_task_update_begin(updates, handle)
            atb._npu_paged_attention(*arguments, numbers(lengths), out, workspace=workspace)
            torch.npu.graph_task_update_end(updates)
            event.record(updates)
        given.lengths = lengths
        yield out, given.expect(query, (1, 1, 1), no_mask)


def equal(actual, expected):
    step = {torch.bfloat16: 0.03, torch.float16: 0.004}.get(actual.dtype, 0)
    return (actual.cpu().double() - expected.double()).abs().max().item() <= step


def refused():
    given, query = Sequences(torch.float16), torch.randn(3, 4, 8).half().npu()
    keys, values = given.caches()
    calls = {
        "slopes": lambda: atb._npu_flash_attention_v2(
            query, query, query, [3], mask=query, slopes=query, mask_type=4, num_heads=4, num_kv_heads=4, out=query),
        "quantised caches": lambda: atb._npu_paged_attention_quant(
            query, keys, values, 2, 4, SCALE, given.table.npu(), numbers(given.lengths), 1, 1, keys, values, query),
        "lengths on the device": lambda: atb._npu_paged_attention(
            query, keys, values, 2, 4, SCALE, given.table.npu(), numbers(given.lengths).npu(), query),
    }
    for name, call in calls.items():
        try:
            call()
            torch.npu.synchronize()
            print(f"{name}: computed", flush=True)
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}", flush=True)


def main():
    torch.manual_seed(3)
    wrong = []
    for name, run in CASES.items():
        good = all([equal(actual, expected) for actual, expected in run()])
        print(f"{name}: {'equal' if good else 'differs'}", flush=True)
        if not good:
            wrong.append(name)
    print("equal" if not wrong else f"differ: {' '.join(wrong)}", flush=True)


if __name__ == "__main__":
    refused() if "--refused" in sys.argv else main()
