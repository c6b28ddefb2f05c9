"""Memory of graphs: weights, inputs and gradients that are replaced, let go, or loaded as they should be."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main, rounds


class Holder:
    pass


def fault_weight():
    """a weight is replaced after the capture, and its memory goes to a cache"""
    x, layer = torch.ones(2, 64, device="npu"), Holder()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: x @ layer.w)  # finds: LINT-48
    layer.w = torch.full((64, 64), 2.0, device="npu").t().contiguous()
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return [y[0, 0].item(), cache[0, 0].item()]


def right_weight():
    x, layer = torch.ones(2, 64, device="npu"), Holder()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: x @ layer.w)
    layer.w.copy_(torch.full((64, 64), 2.0, device="npu").t())
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return [y[0, 0].item(), cache[0, 0].item()]


def right_captured_again():
    x, layer = torch.ones(2, 64, device="npu"), Holder()
    layer.w = torch.full((64, 64), 1.0, device="npu")
    step = lambda: x @ layer.w
    graph, y = captured(step)
    graph.replay()
    layer.w = torch.full((64, 64), 2.0, device="npu")
    graph, y = captured(step)
    cache = torch.full((64, 64), 7.0, device="npu")
    graph.replay()
    return [y[0, 0].item(), cache[0, 0].item()]


# No argument of an operator that is written in Python names the mask that it reads. What it calls is recorded.
LIBRARY = torch.library.Library("acltape_memory", "DEF")
LIBRARY.define("masked(Tensor x) -> Tensor")
LIBRARY.define("masked_as_it_should(Tensor x) -> Tensor")


def fault_hidden_mask():
    """an operator in Python reads a mask that is made anew, and its memory goes to a cache"""
    LIBRARY.impl("masked", lambda x: x * Holder.mask, "PrivateUse1")  # finds: LINT-48
    x = torch.ones(64, 64, device="npu")
    Holder.mask = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: torch.ops.acltape_memory.masked(x))
    Holder.mask = None
    cache = torch.full((64, 64), 7.0, device="npu")
    Holder.mask = torch.full((64, 64), 1.0, device="npu")
    graph.replay()
    return [y[0, 0].item(), cache[0, 0].item()]


def right_hidden_mask():
    LIBRARY.impl("masked_as_it_should", lambda x: x * Holder.mask, "PrivateUse1")
    x = torch.ones(64, 64, device="npu")
    Holder.mask = torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: torch.ops.acltape_memory.masked_as_it_should(x))
    cache = torch.full((64, 64), 7.0, device="npu")
    Holder.mask.copy_(torch.full((64, 64), 1.0, device="npu"))
    graph.replay()
    return [y[0, 0].item(), cache[0, 0].item()]


def layer_of(value):
    layer = torch.nn.Linear(8, 8, bias=False)
    with torch.no_grad():
        layer.weight.fill_(value)
    return layer


def fault_data():
    """`.data` of a parameter is assigned"""
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))  # finds: LINT-48
        layer.weight.data = torch.full((8, 8), 2.0, device="npu")
        return rounds(graph, y, 2)


def right_data():
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))
        layer.weight.data.copy_(torch.full((8, 8), 2.0, device="npu"))
        return rounds(graph, y, 2)


def fault_assigned_state():
    """load_state_dict(assign=True) puts other parameters in place"""
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))  # finds: LINT-48
        layer.load_state_dict(layer_of(2.0).npu().state_dict(), assign=True)
        return rounds(graph, y, 2)


def right_assigned_state():
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))
        layer.load_state_dict(layer_of(2.0).npu().state_dict())
        return rounds(graph, y, 2)


def fault_module_moved():
    """a module goes to the host and comes back elsewhere, as a server that sleeps does"""
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))  # finds: LINT-48
        layer.cpu()
        kept = torch.full((8, 8), 5.0, device="npu")
        layer.npu()
        return rounds(graph, y, 2) + [kept[0, 0].item()]


def right_module_moved():
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))
        asleep = layer.weight.cpu()
        kept = torch.full((8, 8), 5.0, device="npu")
        layer.weight.copy_(asleep)
        return rounds(graph, y, 2) + [kept[0, 0].item()]


def fault_dtype():
    """a module is cast after its capture"""
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        graph, y = captured(lambda: layer(x))  # finds: LINT-48
        layer.double().float()
        layer.weight.fill_(3.0)
        return rounds(graph, y, 2)


def right_dtype():
    x, layer = torch.ones(2, 8, device="npu"), layer_of(1.0).npu()
    with torch.no_grad():
        layer.double().float()
        graph, y = captured(lambda: layer(x))
        layer.weight.fill_(3.0)
        return rounds(graph, y, 2)


def fault_input():
    """an input is bound anew for each execution"""
    held = Holder()
    held.x = torch.ones(32, device="npu")
    graph, y = captured(lambda: held.x.exp())  # finds: LINT-48
    others = []

    def feed(i):
        held.x = torch.full((32,), float(i), device="npu")
        others.append(torch.full((32,), -1.0, device="npu"))

    return rounds(graph, y, 3, feed)


def right_input():
    held = Holder()
    held.x = torch.ones(32, device="npu")
    graph, y = captured(lambda: held.x.exp())
    others = []

    def feed(i):
        held.x.copy_(torch.full((32,), float(i), device="npu"))
        others.append(torch.full((32,), -1.0, device="npu"))

    return rounds(graph, y, 3, feed)


def fault_freed():
    """an input is let go, and nobody has its memory yet"""
    x = torch.ones(1024, device="npu")
    box = [x + 0]
    graph, y = captured(lambda: box[0].exp().sum())  # finds: LINT-48
    box.clear()
    kept = rounds(graph, y, 2)
    scratch = (x * 100 + 1)
    return kept + rounds(graph, y, 1) + [scratch.mean().item()]


def right_freed():
    x = torch.ones(1024, device="npu")
    box = [x + 0]
    graph, y = captured(lambda: box[0].exp().sum())
    kept = rounds(graph, y, 2)
    scratch = (x * 100 + 1)
    return kept + rounds(graph, y, 1) + [scratch.mean().item()]


def fault_cache():
    """the cache is made anew, larger, and the graph goes on with the old one"""
    held = Holder()
    held.cache = torch.zeros(16, 8, device="npu")
    graph, y = captured(lambda: held.cache.sum(0))  # finds: LINT-48

    def grow(rows):
        larger = torch.zeros(rows, 8, device="npu")
        larger[:held.cache.shape[0]] = held.cache
        held.cache = larger

    def feed(i):
        if i == 1:
            grow(32)
        held.cache[i] = 1.0

    return rounds(graph, y, 3, feed)


def right_cache():
    held = Holder()
    held.cache = torch.zeros(32, 8, device="npu")
    graph, y = captured(lambda: held.cache.sum(0))

    def feed(i):
        held.cache[i] = 1.0

    return rounds(graph, y, 3, feed)


def fault_resized():
    """resize_() moves an input"""
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x[:4] * 2)  # finds: LINT-48
    x.resize_(4096)

    def feed(i):
        x.fill_(float(i))

    return rounds(graph, y, 3, feed)


def right_resized():
    whole = torch.ones(4096, device="npu")
    x = whole[:4]
    graph, y = captured(lambda: x[:4] * 2)
    x = whole

    def feed(i):
        x.fill_(float(i))

    return rounds(graph, y, 3, feed)


def fault_not_copied():
    """an input of each round never comes into the captured tensor"""
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * 2)
    current = [x]

    def feed(i):
        current.append(torch.full((8,), float(i), device="npu"))  # finds: LINT-52

    return rounds(graph, y, 3, feed)


def right_not_copied():
    x = torch.ones(8, device="npu")
    graph, y = captured(lambda: x * 2)
    current = [x]

    def feed(i):
        current.append(torch.full((8,), float(i), device="npu"))
        x.copy_(current[-1])

    return rounds(graph, y, 3, feed)


def fault_copied_late():
    """an input is copied after the execution that needs it"""
    x = torch.zeros(8, device="npu")
    graph, y = captured(lambda: x + 1)
    kept = []
    for i in range(3):
        fresh = torch.full((8,), i + 5.0, device="npu")
        graph.replay()
        kept.append(y.clone())
        x.copy_(fresh)  # finds: LINT-52
    return torch.stack(kept).tolist()


def right_copied_late():
    x = torch.zeros(8, device="npu")
    graph, y = captured(lambda: x + 1)
    kept = []
    for i in range(3):
        fresh = torch.full((8,), i + 5.0, device="npu")
        x.copy_(fresh)
        graph.replay()
        kept.append(y.clone())
    return torch.stack(kept).tolist()


def right_copied_ahead():
    """The next input is copied while the host has time."""
    x = torch.zeros(8, device="npu")
    graph, y = captured(lambda: x + 1)
    kept = []
    x.copy_(torch.full((8,), 5.0, device="npu"))
    for i in range(3):
        graph.replay()
        kept.append(y.clone())
        x.copy_(torch.full((8,), i + 6.0, device="npu"))
    return torch.stack(kept).tolist()


def fault_gradients():
    """zero_grad() lets go of the gradients that the graph writes"""
    layer, x = layer_of(1.0).npu(), torch.ones(2, 8, device="npu")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)

    def backward():
        layer(x).sum().backward()  # finds: LINT-53
        return layer.weight.detach()

    for _ in range(2):
        backward()
        optimizer.step()
        optimizer.zero_grad()
    graph, weight = captured(backward, warm_ups=0)
    kept = []
    for _ in range(2):
        optimizer.zero_grad()
        graph.replay()
        optimizer.step()
        kept.append(weight.clone())
    return torch.stack(kept).tolist()


def right_gradients():
    layer, x = layer_of(1.0).npu(), torch.ones(2, 8, device="npu")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)

    def backward():
        layer(x).sum().backward()
        return layer.weight.detach()

    for _ in range(2):
        backward()
        optimizer.step()
        optimizer.zero_grad()
    graph, weight = captured(backward, warm_ups=0)
    kept = []
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        graph.replay()
        optimizer.step()
        kept.append(weight.clone())
    return torch.stack(kept).tolist()



def right_piecewise():
    """Graphs of one pool, each of which reads what the one before makes."""
    x, pool = torch.ones(16, device="npu"), torch.npu.graph_pool_handle()
    graphs, value = [], x
    for _ in range(3):
        torch.tanh(value)
    torch.npu.synchronize()
    for _ in range(3):
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph, pool=pool):
            value = torch.tanh(value) + 1
        graphs.append(graph)
    kept = []
    for i in range(3):
        x.fill_(float(i))
        for graph in graphs:
            graph.replay()
        kept.append(value.clone())
    return torch.stack(kept).tolist()


def fault_storage_released():
    """the storage of a weight is released, to sleep, and made anew"""
    x, w = torch.ones(2, 64, device="npu"), torch.full((64, 64), 1.0, device="npu")
    graph, y = captured(lambda: x @ w)  # finds: LINT-48
    saved, size = w.cpu(), w.untyped_storage().nbytes()
    w.untyped_storage().resize_(0)
    other = torch.full((64, 64), 7.0, device="npu")
    w.untyped_storage().resize_(size)
    w.copy_(saved)
    return rounds(graph, y[0, :2], 2) + [other[0, 0].item()]


def right_storage_released():
    x, w = torch.ones(2, 64, device="npu"), torch.full((64, 64), 1.0, device="npu")
    saved, size = w.cpu(), w.untyped_storage().nbytes()
    w.untyped_storage().resize_(0)
    other = torch.full((64, 64), 7.0, device="npu")
    w.untyped_storage().resize_(size)
    w.copy_(saved)
    graph, y = captured(lambda: x @ w)
    return rounds(graph, y[0, :2], 2) + [other[0, 0].item()]


if __name__ == "__main__":
    main()
