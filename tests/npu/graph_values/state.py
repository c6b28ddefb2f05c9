"""State that warm-ups move on, work that the capture does not hold, and the right forms of both."""
import torch
import torch_npu  # noqa: F401

from programs import captured


def moved(a, x, state):
    state.copy_(torch.tanh(a @ state + x))  # finds: LINT-42
    return state.sum()


def warmed():
    a, x = torch.randn(8, 8, device="npu") / 3, torch.ones(8, device="npu")
    state = torch.zeros(8, device="npu")
    graph, out = captured(lambda: moved(a, x, state), warm_ups=2)
    values = []
    for _ in range(3):
        graph.replay()
        values.append(out.item())
    return values


def moved_and_reset(a, x, state):
    state.copy_(torch.tanh(a @ state + x))
    return state.sum()


def warmed_and_reset():
    a, x = torch.randn(8, 8, device="npu") / 3, torch.ones(8, device="npu")
    state = torch.zeros(8, device="npu")
    graph, out = captured(lambda: moved_and_reset(a, x, state), warm_ups=2)
    state.zero_()
    values = []
    for _ in range(3):
        graph.replay()
        values.append(out.item())
    return values


def advanced(a, x, state):
    state.copy_(torch.tanh(a @ state + x))
    return state.sum()


def eager_first():
    """The first steps run eagerly and are read: the state goes on from there on purpose."""
    a, x = torch.randn(8, 8, device="npu") / 3, torch.ones(8, device="npu")
    state = torch.zeros(8, device="npu")
    values = [advanced(a, x, state).item() for _ in range(2)]
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        out = advanced(a, x, state)
    for _ in range(3):
        graph.replay()
        values.append(out.item())
    return values


def trained():
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


def cache_written(cache, row, place):
    cache.index_copy_(0, place, row)
    return cache.sum()


def filled_cache():
    cache, row = torch.zeros(8, 4, device="npu"), torch.ones(1, 4, device="npu")
    place = torch.zeros(1, dtype=torch.int64, device="npu")
    graph, out = captured(lambda: cache_written(cache, row, place))
    values = []
    for i in range(3):
        place.fill_(i)
        graph.replay()
        values.append(out.item())
    return values


def norm_of(grads, norm, work):
    with torch.npu.stream(work):
        norm.copy_(torch.stack([g.square().sum() for g in grads]).sum().sqrt())  # finds: LINT-44


def empty():
    grads = [torch.full((16,), float(i), device="npu") for i in range(4)]
    norm, work = torch.zeros((), device="npu"), torch.npu.Stream()
    torch.npu.synchronize()
    norm_of(grads, norm, work)
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, capture_error_mode="relaxed"):
        norm_of(grads, norm, work)
    torch.npu.synchronize()
    values = []
    for _ in range(3):
        for g in grads:
            g.mul_(2)
        torch.npu.synchronize()
        graph.replay()
        torch.npu.synchronize()
        values.append(norm.item())
    return values


def norm_joined(grads, norm, work):
    work.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(work):
        norm.copy_(torch.stack([g.square().sum() for g in grads]).sum().sqrt())
    torch.npu.current_stream().wait_stream(work)


def joined():
    grads = [torch.full((16,), float(i), device="npu") for i in range(4)]
    norm, work = torch.zeros((), device="npu"), torch.npu.Stream()
    graph, _ = captured(lambda: norm_joined(grads, norm, work))
    values = []
    for _ in range(3):
        for g in grads:
            g.mul_(2)
        graph.replay()
        values.append(norm.item())
    return values


if __name__ == "__main__":
    torch.manual_seed(0)
    for run in (warmed, warmed_and_reset, eager_first, trained, filled_cache, empty, joined):
        print(run.__name__, run())
