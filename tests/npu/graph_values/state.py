"""State that warm-ups move on, work that a capture does not hold, and the right forms of both."""
import threading

import torch
import torch_npu  # noqa: F401

from programs import captured, main, rounds


def fault_recurrent():
    """warm-ups move the state of a recurrent layer"""
    a, x = torch.full((8, 8), 0.1, device="npu"), torch.ones(8, device="npu")
    state = torch.zeros(8, device="npu")

    def step():
        state.copy_(torch.tanh(a @ state + x))  # finds: LINT-42
        return state.sum()

    graph, out = captured(step, warm_ups=2)
    return rounds(graph, out, 3)


def right_recurrent():
    a, x = torch.full((8, 8), 0.1, device="npu"), torch.ones(8, device="npu")
    state = torch.zeros(8, device="npu")

    def step():
        state.copy_(torch.tanh(a @ state + x))
        return state.sum()

    graph, out = captured(step, warm_ups=2)
    state.zero_()
    return rounds(graph, out, 3)


def right_eager_first():
    """The first steps run eagerly and are read: the state goes on from there on purpose."""
    a, x = torch.full((8, 8), 0.1, device="npu"), torch.ones(8, device="npu")
    state, kept = torch.zeros(8, device="npu"), []

    def step():
        state.copy_(torch.tanh(a @ state + x))
        return state.sum()

    for _ in range(2):
        kept.append(step())
    graph, out = captured(step, warm_ups=0)
    return torch.stack(kept).tolist() + rounds(graph, out, 3)


def fault_counter():
    """warm-ups count positions of a sequence"""
    table, position = torch.arange(16.0, device="npu"), torch.zeros(1, dtype=torch.int64, device="npu")

    def step():
        value = table.index_select(0, position)
        position.add_(1)  # finds: LINT-42
        return value

    graph, out = captured(step, warm_ups=3)
    return rounds(graph, out, 3)


def right_counter():
    table, position = torch.arange(16.0, device="npu"), torch.zeros(1, dtype=torch.int64, device="npu")

    def step():
        value = table.index_select(0, position)
        position.add_(1)
        return value

    graph, out = captured(step, warm_ups=3)
    position.zero_()
    return rounds(graph, out, 3)


def fault_average():
    """warm-ups move an average"""
    x, average = torch.ones(4, device="npu"), torch.zeros(4, device="npu")

    def step():
        average.lerp_(x, 0.5)  # finds: LINT-42
        return average * 2

    graph, out = captured(step)
    return rounds(graph, out, 2)


def right_average():
    x, average = torch.ones(4, device="npu"), torch.zeros(4, device="npu")

    def step():
        average.lerp_(x, 0.5)
        return average * 2

    kept = average.clone()
    graph, out = captured(step)
    average.copy_(kept)
    return rounds(graph, out, 2)


def fault_batch_norm():
    """warm-ups move the running mean of a batch norm"""
    norm, x = torch.nn.BatchNorm1d(4, momentum=0.5).npu(), torch.arange(8.0, device="npu").view(2, 4)

    def step():
        return norm(x) + norm.running_mean  # finds: LINT-42

    with torch.no_grad():
        graph, out = captured(step, warm_ups=2)
        return rounds(graph, out, 2)


def right_batch_norm():
    norm, x = torch.nn.BatchNorm1d(4, momentum=0.5).npu(), torch.arange(8.0, device="npu").view(2, 4)

    def step():
        return norm(x) + norm.running_mean

    with torch.no_grad():
        graph, out = captured(step, warm_ups=2)
        norm.reset_running_stats()
        return rounds(graph, out, 2)


def fault_sum_of_losses():
    """warm-ups are in a sum over an evaluation"""
    w, x, total = torch.ones(4, device="npu"), torch.ones(4, device="npu"), torch.zeros((), device="npu")

    def evaluate():
        total.add_((w * x).sum())  # finds: LINT-42

    graph, _ = captured(evaluate, warm_ups=3)
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
    return total.item()


def right_sum_of_losses():
    w, x, total = torch.ones(4, device="npu"), torch.ones(4, device="npu"), torch.zeros((), device="npu")

    def evaluate():
        total.add_((w * x).sum())

    graph, _ = captured(evaluate, warm_ups=3)
    total.zero_()
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
    return total.item()


def right_trained():
    """Warm-ups of a training are steps of it."""
    model = torch.nn.Linear(8, 4).npu()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 8, device="npu"), torch.randn(16, 4, device="npu")

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = captured(step, warm_ups=3)
    for _ in range(3):
        graph.replay()
    return loss.item()


def right_filled_cache():
    """A warm-up writes a row of a cache that the first execution writes again."""
    cache, row = torch.zeros(8, 4, device="npu"), torch.ones(1, 4, device="npu")
    place = torch.zeros(1, dtype=torch.int64, device="npu")

    def step():
        cache.index_copy_(0, place, row)
        return cache.sum()

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: place.fill_(i))


def fault_empty():
    """all work lies on a stream that never joins: the graph is empty"""
    grads = [torch.full((16,), float(i), device="npu") for i in range(4)]
    norm, work = torch.zeros((), device="npu"), torch.npu.Stream()

    def step():
        with torch.npu.stream(work):
            norm.copy_(torch.stack([g.square().sum() for g in grads]).sum().sqrt())  # finds: LINT-44

    torch.npu.synchronize()
    step()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, capture_error_mode="relaxed"):
        step()
    torch.npu.synchronize()
    for _ in range(3):
        for g in grads:
            g.mul_(2)
        torch.npu.synchronize()
        graph.replay()
        torch.npu.synchronize()
    return norm.item()


def right_empty():
    grads = [torch.full((16,), float(i), device="npu") for i in range(4)]
    norm, work = torch.zeros((), device="npu"), torch.npu.Stream()

    def step():
        work.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(work):
            norm.copy_(torch.stack([g.square().sum() for g in grads]).sum().sqrt())
        torch.npu.current_stream().wait_stream(work)

    graph, _ = captured(step)
    for _ in range(3):
        for g in grads:
            g.mul_(2)
        graph.replay()
    return norm.item()


def fault_partly_empty():
    """a part of the work lies on a stream that never joins: the graph lacks it"""
    x, scale, work = torch.ones(16, device="npu"), torch.ones((), device="npu"), torch.npu.Stream()

    def step():
        with torch.npu.stream(work):
            scale.copy_(x.amax())  # finds: LINT-32
        return x.exp() * scale

    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, capture_error_mode="relaxed"):
        out = step()
    torch.npu.synchronize()

    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


def right_partly_empty():
    x, scale, work = torch.ones(16, device="npu"), torch.ones((), device="npu"), torch.npu.Stream()

    def step():
        work.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(work):
            scale.copy_(x.amax())
        torch.npu.current_stream().wait_stream(work)
        return x.exp() * scale

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


def fault_other_thread():
    """a part of the work is done by another thread, which does not capture"""
    x, scale = torch.ones(16, device="npu"), torch.ones((), device="npu")
    side = torch.npu.Stream()

    def measure():
        torch.npu.set_device(0)
        with torch.npu.stream(side):
            scale.copy_(x.amax())  # finds: LINT-32
            side.synchronize()

    def step():
        thread = threading.Thread(target=measure)
        thread.start()
        thread.join()
        return x.exp() * scale

    torch.npu.synchronize()
    step()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, capture_error_mode="thread_local"):
        out = step()
    torch.npu.synchronize()
    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


def right_other_thread():
    x, scale = torch.ones(16, device="npu"), torch.ones((), device="npu")

    def step():
        scale.copy_(x.amax())
        return x.exp() * scale

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


if __name__ == "__main__":
    main()
