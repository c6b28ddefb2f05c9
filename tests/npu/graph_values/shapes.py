"""Lists, slices and shapes that a graph keeps, and programs that capture or update each of them."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main, rounds


def fault_slice():
    """a slice of a cache by a length of Python"""
    k, q = torch.ones(64, 8, device="npu"), torch.ones(8, device="npu")

    def attend(n):
        return (k[:n] @ q).sum()  # finds: LINT-14

    for n in (8, 9, 10):
        attend(n)
    graph, out = captured(lambda: attend(8))
    return rounds(graph, out, 3)


def right_slice():
    """a graph for each length"""
    k, q = torch.ones(64, 8, device="npu"), torch.ones(8, device="npu")

    def attend(n):
        return (k[:n] @ q).sum()

    graphs = [captured(lambda n=n: attend(n)) for n in (8, 9, 10)]
    kept = []
    for graph, out in graphs:
        graph.replay()
        kept.append(out.clone())
    return torch.stack(kept).tolist()


def fault_narrow():
    """narrow() by a length of Python"""
    k = torch.ones(16, 4, device="npu")

    def step(n):
        return k.narrow(0, 0, n).sum(0)  # finds: LINT-14

    for n in (4, 5, 6):
        step(n)
    graph, out = captured(lambda: step(4))
    return rounds(graph, out, 3)


def right_narrow():
    k, valid = torch.ones(16, 4, device="npu"), torch.zeros(16, 1, device="npu")
    graph, out = captured(lambda: (k * valid).sum(0))

    def feed(i):
        valid.zero_()
        valid[:4 + i] = 1.0

    return rounds(graph, out, 3, feed)


def fault_slot():
    """a place in the cache, of Python, into which a row is written"""
    cache, row = torch.zeros(8, 4, device="npu"), torch.ones(4, device="npu")

    def step(i):
        cache[i] = row * 2  # finds: LINT-14
        return cache.sum(1)

    for i in range(3):
        step(i)
    cache.zero_()
    graph, out = captured(lambda: step(0), warm_ups=0)
    return rounds(graph, out, 3)


def right_slot():
    cache, row = torch.zeros(8, 4, device="npu"), torch.ones(1, 4, device="npu")
    place = torch.zeros(1, dtype=torch.int64, device="npu")

    def step():
        cache.index_copy_(0, place, row * 2)
        return cache.sum(1)

    graph, out = captured(step)
    cache.zero_()
    return rounds(graph, out, 3, lambda i: place.fill_(i))


def fault_mask():
    """a mask of positions below a length of Python"""
    x, positions = torch.ones(8, device="npu"), torch.arange(8, device="npu")

    def step(n):
        return (x * (positions < n)).sum()  # finds: LINT-14

    for n in (2, 3, 4):
        step(n)
    graph, out = captured(lambda: step(2))
    return rounds(graph, out, 3)


def right_mask():
    x, positions = torch.ones(8, device="npu"), torch.arange(8, device="npu")
    n = torch.zeros((), dtype=torch.int64, device="npu")
    graph, out = captured(lambda: (x * (positions < n)).sum())
    return rounds(graph, out, 3, lambda i: n.fill_(2 + i))


def fault_causal_mask():
    """the diagonal of a causal mask"""
    scores = torch.ones(8, 8, device="npu")

    def step(past):
        return torch.tril(scores, past).sum(1)  # finds: LINT-14

    for past in (0, 1, 2):
        step(past)
    graph, out = captured(lambda: step(0))
    return rounds(graph, out, 3)


def right_causal_mask():
    scores, mask = torch.ones(8, 8, device="npu"), torch.ones(8, 8, device="npu")
    graph, out = captured(lambda: (scores * mask).sum(1))
    return rounds(graph, out, 3, lambda i: mask.copy_(torch.tril(torch.ones(8, 8), i)))


def fault_arange():
    """positions from a start of Python"""
    x = torch.zeros(4, dtype=torch.int64, device="npu")

    def step(start):
        return x + torch.arange(start, start + 4, device="npu")  # finds: LINT-14

    for start in (0, 4, 8):
        step(start)
    graph, out = captured(lambda: step(0))
    return rounds(graph, out, 3)


def right_arange():
    x, start = torch.zeros(4, dtype=torch.int64, device="npu"), torch.zeros((), dtype=torch.int64, device="npu")
    graph, out = captured(lambda: x + start + torch.arange(4, device="npu"))
    return rounds(graph, out, 3, lambda i: start.fill_(4 * i))


def fault_split():
    """a list of lengths by which a batch is split"""
    x = torch.arange(12.0, device="npu")

    def step(lengths):
        return torch.stack([part.sum() for part in torch.split(x, lengths)])  # finds: LINT-22

    for lengths in ([4, 4, 4], [2, 4, 6], [6, 4, 2]):
        step(lengths)
    graph, out = captured(lambda: step([4, 4, 4]))
    return rounds(graph, out, 3)


def right_split():
    x, member = torch.arange(12.0, device="npu"), torch.zeros(3, 12, device="npu")
    graph, out = captured(lambda: member @ x)

    def feed(i):
        rows, first = torch.zeros(3, 12), 0
        for row, length in enumerate(([4, 4, 4], [2, 4, 6], [6, 4, 2])[i]):
            rows[row, first:first + length] = 1.0
            first += length
        member.copy_(rows)

    return rounds(graph, out, 3, feed)


def fault_padding():
    """how far a batch is padded"""
    x = torch.ones(2, 4, device="npu")

    def step(n):
        return torch.nn.functional.pad(x, (0, n), value=1.0).sum(1)  # finds: LINT-22

    for n in (1, 2, 3):
        step(n)
    graph, out = captured(lambda: step(1))
    return rounds(graph, out, 3)


def right_padding():
    x = torch.ones(2, 4, device="npu")

    def step(n):
        return torch.nn.functional.pad(x, (0, n), value=1.0).sum(1)

    graphs = {n: captured(lambda n=n: step(n)) for n in (1, 2, 3)}
    kept = []
    for n in (1, 2, 3):
        graphs[n][0].replay()
        kept.append(graphs[n][1].clone())
    return torch.stack(kept).tolist()


def fault_expand():
    """how often a row is repeated"""
    row = torch.ones(1, 4, device="npu")

    def step(n):
        return row.expand(n, 4).sum(0)  # finds: LINT-22

    for n in (2, 3, 4):
        step(n)
    graph, out = captured(lambda: step(2))
    return rounds(graph, out, 3)


def right_expand():
    row, times = torch.ones(1, 4, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: (row * times).sum(0))
    return rounds(graph, out, 3, lambda i: times.fill_(2.0 + i))


def fault_view():
    """into how many groups a batch is cut"""
    x = torch.arange(24.0, device="npu")

    def step(groups):
        return x.view(groups, 24 // groups).sum(0).max()  # finds: LINT-22

    for groups in (2, 3, 4):
        step(groups)
    graph, out = captured(lambda: step(2))
    return rounds(graph, out, 3)


def right_view():
    x = torch.arange(24.0, device="npu")

    def step(groups):
        return x.view(groups, 24 // groups).sum(0).max()

    graphs = [captured(lambda groups=groups: step(groups)) for groups in (2, 3, 4)]
    kept = []
    for graph, out in graphs:
        graph.replay()
        kept.append(out.clone())
    return torch.stack(kept).tolist()


def fault_position():
    """a row of a table of positions"""
    table = torch.arange(32.0, device="npu").view(8, 4)
    x = torch.zeros(4, device="npu")

    def step(i):
        return x + table[i]  # finds: LINT-14

    for i in (0, 1, 2):
        step(i)
    graph, out = captured(lambda: step(0))
    return rounds(graph, out, 3)


def right_position():
    table = torch.arange(32.0, device="npu").view(8, 4)
    x, place = torch.zeros(4, device="npu"), torch.zeros(1, dtype=torch.int64, device="npu")
    graph, out = captured(lambda: x + table.index_select(0, place)[0])
    return rounds(graph, out, 3, lambda i: place.fill_(i))


def right_prompt_and_token():
    """A prompt runs eagerly, tokens after it in the graph; the lines are the same."""
    w, token = torch.ones(8, 8, device="npu"), torch.ones(1, 8, device="npu")

    def step(x):
        return torch.relu(x @ w)[: x.shape[0]].sum()

    for n in (5, 7):
        step(torch.ones(n, 8, device="npu"))
    graph, out = captured(lambda: step(token))
    return rounds(graph, out, 3, lambda i: token.fill_(float(i)))


def right_padded_batches():
    """A graph for each size of a batch; a batch is padded to the next one."""
    w = torch.ones(8, 4, device="npu")
    inputs = {n: torch.zeros(n, 8, device="npu") for n in (2, 4)}
    graphs = {n: captured(lambda n=n: torch.relu(inputs[n] @ w)) for n in (2, 4)}
    kept = []
    for n in (1, 2, 3, 4):
        size = 2 if n <= 2 else 4
        inputs[size][:n].copy_(torch.full((n, 8), float(n), device="npu"))
        graphs[size][0].replay()
        kept.append(graphs[size][1][:n].sum())
    return torch.stack(kept).tolist()


def fault_sampled_rows():
    """how many best tokens are kept"""
    logits = torch.arange(16.0, device="npu")

    def step(k):
        return torch.topk(logits, k)[0].sum()  # finds: LINT-14

    for k in (2, 3, 4):
        step(k)
    graph, y = captured(lambda: step(2))
    return rounds(graph, y, 3)


def right_sampled_rows():
    logits, kept = torch.arange(16.0, device="npu"), torch.zeros(8, device="npu")
    graph, y = captured(lambda: (torch.topk(logits, 8)[0] * kept).sum())

    def feed(i):
        kept.zero_()
        kept[:2 + i] = 1.0

    return rounds(graph, y, 3, feed)


if __name__ == "__main__":
    main()
