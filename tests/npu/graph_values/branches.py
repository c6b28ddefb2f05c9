"""Branches of Python that a graph keeps, and programs whose branches may stay outside of it."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main, rounds


def fault_flag():
    """a flag of the host chooses between two lines"""
    x = torch.ones(4, device="npu")

    def step(hot):
        y = x * 2
        if hot:
            y = y.exp()
        else:
            y = y.neg()  # finds: LINT-49
        return y + 1

    for hot in (False, True, True):
        step(hot)
    graph, out = captured(lambda: step(False))
    return rounds(graph, out, 3)


def right_flag():
    """a graph for each branch"""
    x = torch.ones(4, device="npu")

    def step(hot):
        y = x * 2
        if hot:
            y = y.exp()
        else:
            y = y.neg()
        return y + 1

    for hot in (False, True, True):
        step(hot)
    graphs = {hot: captured(lambda hot=hot: step(hot)) for hot in (False, True)}
    kept = []
    for hot in (False, True, True):
        graphs[hot][0].replay()
        kept.append(graphs[hot][1].clone())
    return torch.stack(kept).tolist()


def fault_training():
    """a module is captured while it trains, and evaluated by the graph"""
    drop, x = torch.nn.Dropout(0.5), torch.ones(1024, device="npu")

    def step():
        h = torch.tanh(x)
        h = drop(h)  # finds: LINT-49
        return h * 2

    drop.train()
    graph, out = captured(step)
    drop.eval()
    wanted = step()
    kept = rounds(graph, out, 2)
    wanted.sub_(out)
    return kept


def right_training():
    drop, x = torch.nn.Dropout(0.5), torch.ones(1024, device="npu")

    def step():
        h = torch.tanh(x)
        h = drop(h)
        return h * 2

    drop.train()
    in_training, _ = captured(step)
    in_training.replay()
    drop.eval()
    graph, out = captured(step)
    wanted = step()
    kept = rounds(graph, out, 2)
    wanted.sub_(out)
    return kept


def right_evaluated_beside():
    """The graph serves the training; evaluations run eagerly and are used."""
    drop, x = torch.nn.Dropout(0.5), torch.ones(1024, device="npu")

    def step():
        h = torch.tanh(x)
        h = drop(h)
        return h * 2

    graph, _ = captured(step)
    kept = []
    for _ in range(2):
        drop.train()
        graph.replay()
        drop.eval()
        kept.append(step())
    return torch.stack(kept).tolist()


def right_changed_once():
    """The first steps take another branch than all later ones, which the graph serves."""
    x, seen = torch.ones(4, device="npu"), [0]

    def step():
        seen[0] += 1
        y = x.exp()
        if seen[0] <= 2:
            y = y * 0.5
        return y + 1

    for _ in range(4):
        step()
    graph, out = captured(step)
    return rounds(graph, out, 3)


def fault_value():
    """a value that was read before the capture chooses the line"""
    x = torch.ones(4, device="npu")

    def step(positive):
        if positive:
            y = torch.exp(x)  # finds: LINT-49
        else:
            y = torch.abs(x)
        return y * 3

    for value in (4.0, -4.0, 9.0):
        x.fill_(value)
        step(x.sum().item() > 0)
    x.fill_(4.0)
    positive = x.sum().item() > 0
    graph, out = captured(lambda: step(positive))
    return rounds(graph, out, 3, lambda i: x.fill_((4.0, -4.0, 9.0)[i]))


def right_value():
    x = torch.ones(4, device="npu")

    def step():
        return torch.where(x.sum() > 0, torch.exp(x), torch.abs(x)) * 3

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: x.fill_((4.0, -4.0, 9.0)[i]))


def fault_step_count():
    """a count of steps switches a part on"""
    x, seen = torch.ones(4, device="npu"), [0]

    def step():
        seen[0] += 1
        y = x.exp()
        if seen[0] <= 2:
            y = y * 0.5  # finds: LINT-49
        return y + 1

    def check():
        seen[0] = 0
        for _ in range(4):
            step()
        seen[0] = 0

    check()
    graph, out = captured(step)
    return rounds(graph, out, 3)


def right_step_count():
    x, factor = torch.ones(4, device="npu"), torch.full((), 0.5, device="npu")

    def step():
        return x.exp() * factor + 1

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: factor.fill_(0.5 if i < 1 else 1.0))


def fault_turns():
    """how often a loop of Python turns"""
    x = torch.ones(4, device="npu")

    def step(turns):
        y = x * 1
        for _ in range(turns):
            y = y + x  # finds: LINT-49
        return y * 2

    for turns in (2, 3, 4):
        step(turns)
    graph, out = captured(lambda: step(2))
    return rounds(graph, out, 3)


def right_turns():
    x = torch.ones(4, device="npu")

    def step(turns):
        y = x * 1
        for _ in range(turns):
            y = y + x
        return y * 2

    graphs = [captured(lambda turns=turns: step(turns)) for turns in (2, 3, 4)]
    kept = []
    for graph, out in graphs:
        graph.replay()
        kept.append(out.clone())
    return torch.stack(kept).tolist()


def right_first_call():
    """The first call makes what all later calls use."""
    x, made = torch.ones(4, device="npu"), {}

    def step():
        y = x * 2
        if "mask" not in made:
            made["mask"] = torch.ones(4, device="npu") * 3
        return y * made["mask"]

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: x.fill_(float(i)))


def right_logged():
    """Eager runs log each second step; nothing of it is needed by a graph."""
    x, seen, logged = torch.ones(4, device="npu"), [0], []

    def step():
        y = x * 2
        if seen[0] % 2 == 1 and not torch.npu.is_current_stream_capturing():
            logged.append((y * y).sum())
        seen[0] += 1
        return y + 1

    graph, out = captured(step, warm_ups=4)
    return rounds(graph, out, 3, lambda i: x.fill_(float(i)))


def right_logged_at_the_end():
    """Runs before the capture measure their result, and the program prints the measures."""
    x, logged = torch.ones(4, device="npu"), []

    def step():
        y = torch.sqrt(x)
        if not torch.npu.is_current_stream_capturing():
            logged.append(y.square().sum())
        return y

    graph, out = captured(step, warm_ups=3)
    return torch.stack(logged).tolist() + rounds(graph, out, 3, lambda i: x.fill_(float(i)))


def right_prefill():
    """The first part of a request takes another branch, on other shapes."""
    w, token = torch.ones(8, 8, device="npu"), torch.ones(1, 8, device="npu")

    def step(x):
        y = x @ w
        if x.shape[0] > 1:
            y = y.cumsum(0)[-1:]
        return y.relu()

    for n in (3, 5):
        step(torch.ones(n, 8, device="npu"))
    graph, out = captured(lambda: step(token))
    step(torch.ones(4, 8, device="npu"))
    return rounds(graph, out, 3, lambda i: token.fill_(float(i)))


def fault_early_return():
    """a function returns early in eager runs"""
    x = torch.ones(4, device="npu")

    def step(skip):
        y = x.exp()
        if skip:
            return y
        return y.neg()  # finds: LINT-49

    kept = []
    for skip in (False, True, True):
        kept.append(step(skip))
    torch.stack(kept).tolist()
    graph, out = captured(lambda: step(False))
    return rounds(graph, out, 3)


def right_early_return():
    x = torch.ones(4, device="npu")

    def step(skip):
        y = x.exp()
        if skip:
            return y
        return y.neg()

    graphs = {skip: captured(lambda skip=skip: step(skip)) for skip in (False, True)}
    kept = []
    for skip in (False, True, True):
        graphs[skip][0].replay()
        kept.append(graphs[skip][1].clone())
    return torch.stack(kept).tolist()


def fault_adapter_of_weights():
    """an adapter of weights is switched on for some requests"""
    torch.manual_seed(0)
    x, w = torch.ones(2, 4, device="npu"), torch.ones(4, 4, device="npu")
    a, b = torch.ones(4, 1, device="npu"), torch.ones(1, 4, device="npu")

    class Layer(torch.nn.Module):
        adapted = False

        def forward(self, x):
            y = x @ w
            if self.adapted:
                y = y + (x @ a) @ b  # finds: LINT-49
            return y.relu()

    layer = Layer()
    for adapted in (False, True):
        layer.adapted = adapted
        layer(x)
    layer.adapted = False
    graph, out = captured(lambda: layer(x))
    layer.adapted = True
    return rounds(graph, out, 2)


def right_adapter_of_weights():
    x, w = torch.ones(2, 4, device="npu"), torch.ones(4, 4, device="npu")
    a, b = torch.ones(4, 1, device="npu"), torch.ones(1, 4, device="npu")
    strength = torch.zeros((), device="npu")

    def forward():
        y = x @ w
        y = y + ((x @ a) @ b) * strength
        return y.relu()

    graph, out = captured(forward)
    strength.fill_(1.0)
    return rounds(graph, out, 2)


def fault_experts():
    """which experts run is a list of the host"""
    x, experts = torch.ones(2, 4, device="npu"), [torch.full((4, 4), float(i), device="npu") for i in range(4)]

    def step(chosen):
        y = x * 1
        for e in chosen:
            y = y + x @ experts[e]  # finds: LINT-49
        return y

    for chosen in ([0], [1, 2], [3]):
        step(chosen)
    graph, out = captured(lambda: step([0]))
    return rounds(graph, out, 2)


def right_experts():
    x, experts = torch.ones(2, 4, device="npu"), torch.stack(
        [torch.full((4, 4), float(i), device="npu") for i in range(4)])
    gate = torch.zeros(4, 1, 1, device="npu")

    def step():
        return x + (torch.matmul(x, experts) * gate).sum(0)

    graph, out = captured(step)

    def feed(i):
        gate.zero_()
        gate[[1, 2] if i == 0 else [3]] = 1.0

    return rounds(graph, out, 2, feed)


if __name__ == "__main__":
    main()
