"""Numbers of the host that a graph keeps, and programs that update each of them."""
import torch
import torch_npu  # noqa: F401

from programs import captured, main, rounds


def fault_multiplier():
    """a number that Python draws, once, at the capture"""
    drawn = [0.0, 2.0, 3.0, 1.0]
    x = torch.ones(64, device="npu")

    def step():
        return torch.sqrt(x) * drawn.pop(0)  # finds: LINT-14

    for _ in range(3):
        step()
    graph, out = captured(step, warm_ups=0)
    return rounds(graph, out, 3)


def right_multiplier():
    drawn = [0.0, 2.0, 3.0]
    x, factor = torch.ones(64, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: torch.sqrt(x) * factor)
    return rounds(graph, out, 3, lambda i: factor.fill_(drawn[i]))


def fault_alpha():
    """`alpha` of an addition"""
    x, y = torch.ones(4, device="npu"), torch.ones(4, device="npu")

    def step(alpha):
        return torch.add(x, y, alpha=alpha)  # finds: LINT-14

    for i in range(3):
        step(float(i))
    graph, out = captured(lambda: step(0.0))
    return rounds(graph, out, 3)


def right_alpha():
    x, y = torch.ones(4, device="npu"), torch.ones(4, device="npu")
    alpha = torch.zeros((), device="npu")

    def step():
        return torch.add(x, y * alpha)

    graph, out = captured(step)
    return rounds(graph, out, 3, lambda i: alpha.fill_(float(i)))


def fault_temperature():
    """a temperature that each request brings"""
    logits = torch.arange(8.0, device="npu")

    def probabilities(temperature):
        return torch.softmax(logits / temperature, 0)  # finds: LINT-14

    for temperature in (1.0, 2.0, 4.0):
        probabilities(temperature)
    graph, out = captured(lambda: probabilities(1.0))
    return rounds(graph, out, 3)


def right_temperature():
    logits, temperature = torch.arange(8.0, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: torch.softmax(logits / temperature, 0))
    return rounds(graph, out, 3, lambda i: temperature.fill_(2.0 ** i))


def fault_dropout():
    """a dropout probability that a schedule changes"""
    x = torch.ones(4096, device="npu")

    def step(p):
        return torch.nn.functional.dropout(x, p)  # finds: LINT-14

    for p in (0.125, 0.5, 0.75):
        step(p)
    graph, out = captured(lambda: step(0.125))
    return kept_shares(graph, out)


def kept_shares(graph, out, before=lambda i: None):
    """Eighths of the elements that are not zero, for each of three executions."""
    kept = []
    for i in range(3):
        before(i)
        graph.replay()
        kept.append(out.count_nonzero())
    return [round(count / 512) for count in torch.stack(kept).tolist()]


def right_dropout():
    x, p = torch.ones(4096, device="npu"), torch.zeros((), device="npu")
    graph, out = captured(lambda: torch.rand_like(x) >= p)
    return kept_shares(graph, out, lambda i: p.fill_((0.125, 0.5, 0.75)[i]))


def fault_item():
    """a value that the host read before the capture"""
    x = torch.ones(8, device="npu")

    def scaled(scale):
        return x * 2 / scale  # finds: LINT-14

    for i in range(3):
        x.fill_(float(i + 1))
        scaled(x.amax().item())
    x.fill_(1.0)
    scale = x.amax().item()
    graph, out = captured(lambda: scaled(scale))
    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


def right_item():
    x = torch.ones(8, device="npu")
    graph, out = captured(lambda: x * 2 / x.amax())
    return rounds(graph, out, 3, lambda i: x.fill_(float(i + 1)))


def fault_tensor_of_the_host():
    """a tensor of the host without dimensions, which an operator takes as a number"""
    x = torch.ones(4, device="npu")

    def step(value):
        return x * torch.tensor(value)  # finds: LINT-14

    for value in (1.0, 2.0, 3.0):
        step(value)
    graph, out = captured(lambda: step(1.0))
    return rounds(graph, out, 3)


def right_tensor_of_the_host():
    x, value = torch.ones(4, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: x * value)
    return rounds(graph, out, 3, lambda i: value.copy_(torch.tensor(i + 1.0)))


def fault_fill():
    """a tensor that is filled with a number"""
    x = torch.zeros(4, device="npu")

    def step(value):
        return x + torch.full((4,), value, device="npu")  # finds: LINT-14

    for value in (1.0, 2.0, 3.0):
        step(value)
    graph, out = captured(lambda: step(1.0))
    return rounds(graph, out, 3)


def right_fill():
    x, value = torch.zeros(4, device="npu"), torch.ones(4, device="npu")
    graph, out = captured(lambda: x + value)
    return rounds(graph, out, 3, lambda i: value.fill_(i + 1.0))


def fault_clamp():
    """a limit of clamp_, as of a gradient's norm"""
    x = torch.full((4,), 9.0, device="npu")

    def step(limit):
        return x.clamp(max=limit)  # finds: LINT-14

    for limit in (1.0, 2.0, 3.0):
        step(limit)
    graph, out = captured(lambda: step(1.0))
    return rounds(graph, out, 3)


def right_clamp():
    x, limit = torch.full((4,), 9.0, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: torch.minimum(x, limit))
    return rounds(graph, out, 3, lambda i: limit.fill_(i + 1.0))


def linear():
    torch.manual_seed(0)
    with torch.no_grad():
        layer = torch.nn.Linear(4, 1, bias=False)
        layer.weight.fill_(1.0)
    return layer.npu(), torch.ones(2, 4, device="npu")


def fault_learning_rate():
    """the learning rate of an optimizer, which is a Python number"""
    layer, x = linear()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)

    def step():
        optimizer.zero_grad(set_to_none=False)
        layer(x).sum().backward()
        optimizer.step()  # finds: LINT-14
        return layer.weight

    for rate in (0.5, 1.0, 0.75, 0.25):
        optimizer.param_groups[0]["lr"] = rate
        step()
    graph, weight = captured(step)
    with torch.no_grad():
        weight.fill_(1.0)
        optimizer.param_groups[0]["lr"] = 0.5
        return rounds(graph, weight.detach(), 2)


def right_learning_rate():
    layer, x = linear()
    rate = torch.full((), 0.5, device="npu")

    def step():
        layer.weight.grad.zero_()
        layer(x).sum().backward()
        with torch.no_grad():
            layer.weight.sub_(layer.weight.grad * rate)
        return layer.weight

    layer.weight.grad = torch.zeros_like(layer.weight)
    graph, weight = captured(step, warm_ups=3)
    with torch.no_grad():
        weight.fill_(1.0)
        return rounds(graph, weight.detach(), 2)


def fault_adam():
    """the step count of Adam without `capturable`"""
    layer, x = linear()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.5)

    def step():
        optimizer.zero_grad(set_to_none=False)
        layer(x).square().sum().backward()
        optimizer.step()  # finds: LINT-22
        return layer.weight

    graph, weight = captured(step, warm_ups=2)
    return rounds(graph, weight.detach(), 3)


def right_adam():
    layer, x = linear()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.5, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=False)
        layer(x).square().sum().backward()
        optimizer.step()
        return layer.weight

    graph, weight = captured(step, warm_ups=2)
    return rounds(graph, weight.detach(), 3)


def fault_loss_scale():
    """a loss scale that is a Python number"""
    x = torch.ones(4, device="npu", requires_grad=True)
    x.grad = torch.zeros(4, device="npu")

    def step(scale):
        x.grad.zero_()
        (x * 3 * scale).sum().backward()  # finds: LINT-14
        return x.grad

    for scale in (1.0, 2.0, 4.0):
        step(scale)
    graph, grad = captured(lambda: step(1.0))
    return rounds(graph, grad, 3)


def right_loss_scale():
    x = torch.ones(4, device="npu", requires_grad=True)
    x.grad, scale = torch.zeros(4, device="npu"), torch.ones((), device="npu")

    def step():
        x.grad.zero_()
        (x * 3 * scale).sum().backward()
        return x.grad

    graph, grad = captured(step)
    return rounds(graph, grad, 3, lambda i: scale.fill_(2.0 ** i))


def fault_after_the_capture():
    """only runs after the capture have another number"""
    x = torch.ones(4, device="npu")

    def step(value):
        return x.exp() * value  # finds: LINT-14

    graph, out = captured(lambda: step(1.0))
    kept = rounds(graph, out, 2)
    step(5.0)
    graph.replay()
    return kept + [out.tolist()]


def right_after_the_capture():
    x, value = torch.ones(4, device="npu"), torch.ones((), device="npu")
    graph, out = captured(lambda: x.exp() * value)
    kept = rounds(graph, out, 2)
    value.fill_(5.0)
    graph.replay()
    return kept + [out.tolist()]


def right_other_values_run_eagerly():
    """A graph serves the usual value, other ones run eagerly and are used."""
    x = torch.ones(4, device="npu")

    def step(value):
        return x.exp() * value

    graph, out = captured(lambda: step(1.0))
    kept = []
    for value in (1.0, 2.0, 1.0, 3.0):
        if value == 1.0:
            graph.replay()
            kept.append(out.clone())
        else:
            kept.append(step(value))
    return torch.stack(kept).tolist()


def right_changed_once():
    """A value is changed before the capture, and stays."""
    x = torch.ones(4, device="npu")

    def step(value):
        return x.exp() * value

    for value in (1.0, 1.0, 2.0, 2.0):
        step(value)
    graph, out = captured(lambda: step(2.0))
    return rounds(graph, out, 2)


def fault_dtype_of_cast():
    """an element type is chosen by the host"""
    x = torch.full((4,), 0.1, device="npu")

    def step(dtype):
        return x.to(dtype).float() * 3  # finds: LINT-14

    for dtype in (torch.float16, torch.bfloat16, torch.float16):
        step(dtype)
    graph, out = captured(lambda: step(torch.bfloat16))
    return rounds(graph, out, 2)


def right_dtype_of_cast():
    x = torch.full((4,), 0.1, device="npu")

    def step(dtype):
        return x.to(dtype).float() * 3

    graph, out = captured(lambda: step(torch.float16))
    return rounds(graph, out, 2)


if __name__ == "__main__":
    main()
