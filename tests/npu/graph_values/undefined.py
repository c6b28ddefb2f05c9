"""Memory that nothing wrote: used whole, and used as far as it was filled."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main


def dirty():
    """Leaves numbers in memory that the next tensors of these sizes get, as other work of a model does."""
    for size in (8, 16, 64, 256):
        torch.full((size,), 1e4, device="npu")


def fault_padding():
    """padding that nothing wrote, in a maximum over all rows"""
    dirty()
    x = torch.ones(4, 16, device="npu")

    def scaled():
        dirty()
        padded = torch.empty(4, 16, device="npu")
        padded[:3] = x[:3] * 2
        return padded / padded.abs().amax()  # finds: LINT-47

    graph, y = captured(scaled)
    graph.replay()
    return y[0].tolist()


def right_padding():
    dirty()
    x = torch.ones(4, 16, device="npu")

    def scaled():
        dirty()
        padded = torch.zeros(4, 16, device="npu")
        padded[:3] = x[:3] * 2
        return padded / padded.abs().amax()

    graph, y = captured(scaled)
    graph.replay()
    return y[0].tolist()


def right_rows_apart():
    """Each row is scaled by itself, and the program reads those that it filled."""
    dirty()
    x = torch.ones(4, 16, device="npu")

    def scaled():
        dirty()
        padded = torch.empty(4, 16, device="npu")
        padded[:3] = x[:3] * 2
        return padded / padded.abs().amax(dim=1, keepdim=True).clamp(min=1.0)

    graph, y = captured(scaled)
    graph.replay()
    return y[:3].tolist()


def fault_accumulator():
    """an accumulator that begins with whatever the memory holds"""
    dirty()
    total = torch.empty(64, device="npu")
    total.add_(torch.ones(64, device="npu"))  # finds: LINT-47
    return total.sum().item()


def right_accumulator():
    dirty()
    total = torch.zeros(64, device="npu")
    total.add_(torch.ones(64, device="npu"))
    return total.sum().item()


def right_filled_in_two():
    total = torch.empty(8, device="npu")
    total[:3].zero_()
    total[3:] = 1.0
    return total.sum().item()


def fault_columns():
    """rows of a second factor that nothing wrote"""
    dirty()
    a, b = torch.ones(8, 16, device="npu"), torch.empty(16, 16, device="npu")
    b[:8] = 1.0
    c = a @ b  # finds: LINT-47
    return c[0].tolist()


def right_columns():
    dirty()
    a, b = torch.ones(8, 16, device="npu"), torch.zeros(16, 16, device="npu")
    b[:8] = 1.0
    c = a @ b
    return c[0].tolist()


def right_rows():
    """Undefined rows of the first factor are rows of the product."""
    a, b = torch.empty(4, 8, device="npu"), torch.ones(8, 8, device="npu")
    a[:2] = 1.0
    return (a @ b)[:2].sum().item()


def fault_cache():
    """a product reads a cache beyond what was written"""
    dirty()
    q, like = torch.ones(16, device="npu"), torch.ones(16, 16, device="npu")
    cache = torch.empty_like(like)
    cache[:4] = 1.0

    def attend():
        return torch.softmax(cache @ q, 0) @ cache  # finds: LINT-47

    graph, y = captured(attend)
    graph.replay()
    return y.tolist()


def right_cache():
    dirty()
    q, like = torch.ones(16, device="npu"), torch.ones(16, 16, device="npu")
    cache = torch.empty_like(like)
    cache[:4] = 1.0

    def attend():
        return torch.softmax(cache[:4] @ q, 0) @ cache[:4]

    graph, y = captured(attend)
    graph.replay()
    return y.tolist()


def fault_new_empty():
    """a mean over a buffer of new_empty() of which one row was copied"""
    dirty()
    x = torch.ones(1, 16, device="npu")

    def step():
        dirty()
        buffer = x.new_empty(4, 16)
        buffer[0].copy_(x[0])
        return buffer.mean(0)  # finds: LINT-47

    graph, y = captured(step)
    graph.replay()
    return y.tolist()


def right_new_empty():
    dirty()
    x = torch.ones(1, 16, device="npu")

    def step():
        dirty()
        buffer = x.new_zeros(4, 16)
        buffer[0].copy_(x[0])
        return buffer.mean(0)

    graph, y = captured(step)
    graph.replay()
    return y.tolist()


def fault_scratch():
    """scratch of a capture that is read before the graph writes it"""
    dirty()
    x = torch.ones(64, device="npu")

    def step():
        dirty()
        scratch = torch.empty(64, device="npu")
        out = x + scratch  # finds: LINT-47
        scratch.copy_(x)
        return out

    graph, y = captured(step)
    graph.replay()
    return y.tolist()


def right_scratch():
    dirty()
    x = torch.ones(64, device="npu")

    def step():
        dirty()
        scratch = torch.zeros(64, device="npu")
        out = x + scratch
        scratch.copy_(x)
        return out

    graph, y = captured(step)
    graph.replay()
    return y.tolist()


def fault_grown():
    """a buffer that was enlarged, and read whole"""
    dirty()
    buffer = torch.ones(8, device="npu")
    buffer.resize_(64)
    return buffer.sum().item()  # finds: LINT-47


def right_grown():
    dirty()
    buffer = torch.ones(8, device="npu")
    buffer.resize_(64)
    buffer[8:] = 0.0
    return buffer.sum().item()


if __name__ == "__main__":
    main()
