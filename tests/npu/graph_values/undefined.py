"""Memory that nothing wrote: used whole, and used as far as it was filled."""
import torch
import torch_npu  # noqa: F401

from programs import captured


def scaled(x, rows):
    padded = torch.empty(4, 16, device="npu")
    padded[:rows] = x[:rows] * 2
    return padded / padded.abs().amax()  # finds: LINT-47


def padded():
    x = torch.ones(4, 16, device="npu")
    graph, y = captured(lambda: scaled(x, 3))
    graph.replay()
    return y[0, 0].item()


def scaled_rows(x, rows):
    padded = torch.empty(4, 16, device="npu")
    padded[:rows] = x[:rows] * 2
    return padded / padded.abs().amax(dim=1, keepdim=True).clamp(min=1.0)


def rows_apart():
    """Each row is scaled by itself, and the program reads those that it filled."""
    x = torch.ones(4, 16, device="npu")
    graph, y = captured(lambda: scaled_rows(x, 3))
    graph.replay()
    return y[0, 0].item(), y[:3].sum().item()


def scaled_zeros(x, rows):
    padded = torch.zeros(4, 16, device="npu")
    padded[:rows] = x[:rows] * 2
    return padded / padded.abs().amax()


def zeroed():
    x = torch.ones(4, 16, device="npu")
    graph, y = captured(lambda: scaled_zeros(x, 3))
    graph.replay()
    return y[0, 0].item()


def eager():
    total = torch.empty(8, device="npu")
    total.add_(torch.ones(8, device="npu"))  # finds: LINT-47
    return total.sum().item()


def filled_in_two():
    total = torch.empty(8, device="npu")
    total[:3].zero_()
    total[3:] = 1.0
    return total.sum().item()


def product():
    """Undefined rows of the first factor are rows of the product."""
    a, b = torch.empty(4, 8, device="npu"), torch.ones(8, 8, device="npu")
    a[:2] = 1.0
    return (a @ b)[:2].sum().item()


def product_of_columns():
    a, b = torch.ones(4, 8, device="npu"), torch.empty(8, 8, device="npu")
    b[:4] = 1.0
    c = a @ b  # finds: LINT-47
    return c[0, 0].item()


if __name__ == "__main__":
    for run in (padded, rows_apart, zeroed, eager, filled_in_two, product, product_of_columns):
        print(run.__name__, run())
