"""Programs of people who execute graphs, in which nothing is wrong."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main


def right_decoder():
    """A prompt runs eagerly; each token goes from the logits into the input of the graph."""
    torch.manual_seed(0)
    table, w = torch.randn(16, 8, device="npu"), torch.randn(8, 16, device="npu")
    cache, position = torch.zeros(32, 8, device="npu"), torch.zeros(1, dtype=torch.int64, device="npu")
    token = torch.zeros(1, dtype=torch.int64, device="npu")

    def step(tokens, places):
        h = torch.tanh(table.index_select(0, tokens))
        cache.index_copy_(0, places, h)
        scores = torch.softmax(h @ cache.t(), -1)
        return (scores @ cache) @ w

    prompt = torch.arange(4, device="npu")
    logits = step(prompt, torch.arange(4, device="npu"))
    graph, out = captured(lambda: step(token, position))
    token.copy_(logits[-1:].argmax(-1))
    position.fill_(4)
    tokens = []
    for _ in range(5):
        graph.replay()
        following = out.argmax(-1)
        tokens.append(following)
        token.copy_(following)
        position.add_(1)
    return torch.cat(tokens).tolist()


def right_tokens_by_the_host():
    """Each token goes over the host, where text is made of it."""
    table = torch.randn(16, 16, device="npu")
    token = torch.zeros(1, dtype=torch.int64, device="npu")
    graph, out = captured(lambda: table.index_select(0, token).argmax(-1))
    tokens = []
    graph.replay()
    for _ in range(3):
        tokens += out.tolist()
        token.copy_(torch.tensor(tokens[-1:]))
        graph.replay()
    return tokens


def right_batches_with_a_fallback():
    """Graphs of one pool for small batches, which are padded; larger ones run eagerly."""
    w, pool = torch.randn(8, 8, device="npu"), torch.npu.graph_pool_handle()
    inputs = torch.zeros(4, 8, device="npu")
    outputs = torch.zeros(4, 8, device="npu")
    graphs = {}

    def model(x):
        return torch.relu(x @ w) + x

    for n in (4, 2, 1):
        model(inputs[:n])
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            outputs[:n].copy_(model(inputs[:n]))
        graphs[n] = graph
    sums = []
    for n in (1, 3, 6, 2, 4, 5, 1):
        x = torch.randn(n, 8, device="npu")
        if n > 4:
            sums.append(model(x).sum())
            continue
        size = next(s for s in (1, 2, 4) if s >= n)
        inputs[:n].copy_(x)
        graphs[size].replay()
        sums.append(outputs[:n].sum())
    return torch.stack(sums).shape[0]


def right_results_of_one_pool():
    """Graphs of one pool, each of whose results is read before the next one runs."""
    x, pool = torch.ones(256, device="npu"), torch.npu.graph_pool_handle()
    graphs = []
    for factor in (1, 2, 3):
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            out = (x.exp() * factor).sqrt().sum()
        graphs.append((graph, out))
    sums = []
    for turn in range(6):
        graph, out = graphs[turn % 3]
        graph.replay()
        sums.append(out.clone())
    return torch.stack(sums).shape[0]


def right_prefetch():
    """The next batch comes on another stream into the second of two inputs."""
    side, main_stream = torch.npu.Stream(), torch.npu.current_stream()
    inputs = [torch.zeros(8, device="npu") for _ in range(2)]
    graphs = [captured(lambda x=x: x * 2 + 1) for x in inputs]
    batches = [torch.full((8,), float(i), device="npu") for i in range(5)]
    inputs[0].copy_(batches[0])
    sums = []
    for i in range(5):
        side.wait_stream(main_stream)
        if i + 1 < 5:
            with torch.npu.stream(side):
                inputs[(i + 1) % 2].copy_(batches[i + 1])
        graphs[i % 2][0].replay()
        sums.append(graphs[i % 2][1].sum())
        main_stream.wait_stream(side)
    return torch.stack(sums).tolist()


def right_first_batch_in_the_capture():
    """The capture has the first batch; the others are copied when the graph has run."""
    batches = [torch.full((8,), float(i), device="npu") for i in range(4)]
    x = batches[0].clone()
    graph, out = captured(lambda: x + 1)
    sums = []
    for batch in batches[1:]:
        graph.replay()
        sums.append(out.sum())
        x.copy_(batch)
    graph.replay()
    sums.append(out.sum())
    return torch.stack(sums).tolist()


def right_state_outside():
    """A recurrent state goes from the result of the graph into its input."""
    a, state = torch.full((8, 8), 0.1, device="npu"), torch.ones(8, device="npu")
    graph, out = captured(lambda: torch.tanh(a @ state))
    for _ in range(4):
        graph.replay()
        state.copy_(out)
    return state.tolist()


def right_benchmark():
    """A graph is timed, with copies of its result that nobody needs."""
    x = torch.ones(64, device="npu")
    graph, out = captured(lambda: x.exp())
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    for _ in range(5):
        graph.replay()
        out.clone()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) >= 0


def right_graphed_callables():
    """A module is trained by graphs of its forward and backward, and evaluated eagerly."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 2)).npu()
    x, y = torch.randn(4, 8, device="npu"), torch.randn(4, 2, device="npu")
    graphed = torch.npu.make_graphed_callables(model, (torch.randn(4, 8, device="npu"),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(graphed(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return torch.nn.functional.mse_loss(model(x), y).item() > 0


def right_scaled_training():
    """Forward and backward in a graph, with a gradient scaler; the optimizer runs eagerly."""
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 2).npu()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("npu")
    x, y = torch.randn(4, 8, device="npu"), torch.randn(4, 2, device="npu")

    def step():
        with torch.autocast("npu", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        return loss

    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        step()
        scaler.step(optimizer)
        scaler.update()
    optimizer.zero_grad(set_to_none=True)
    graph, loss = captured(step, warm_ups=0)
    for _ in range(3):
        x.copy_(torch.randn(4, 8, device="npu"))
        graph.replay()
        scaler.step(optimizer)  # finds: LINT-40
        scaler.update()
    return loss.item() > 0


def right_train_and_evaluate():
    """Whole steps in a graph; evaluations run the same lines eagerly, without dropout."""
    torch.manual_seed(0)
    first, drop, second = torch.nn.Linear(8, 8).npu(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2).npu()
    parameters = list(first.parameters()) + list(second.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.01, capturable=True)
    x, y = torch.randn(4, 8, device="npu"), torch.randn(4, 2, device="npu")

    def forward():
        return torch.nn.functional.mse_loss(second(drop(torch.relu(first(x)))), y)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = forward()
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = captured(step, warm_ups=3)
    seen = []
    for _ in range(2):
        drop.train()
        x.copy_(torch.randn(4, 8, device="npu"))
        graph.replay()
        drop.eval()
        with torch.no_grad():
            seen.append(forward())
    return torch.stack(seen).shape[0]


if __name__ == "__main__":
    main()
