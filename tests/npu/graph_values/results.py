"""Results of graphs: overwritten before they are read, replaced, and read as they should be."""
import torch
import torch_npu  # noqa: F401

from programs import captured


def overwritten():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)  # finds: LINT-17
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y)
    return [one[0].item() for one in kept]


def cloned():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x * 10)
    kept = []
    for i in range(4):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.clone())
    return [one[0].item() for one in kept]


def stacked():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x + 1)  # finds: LINT-17
    kept = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        kept.append(y)
    return torch.stack(kept).sum().item()


def stacked_clones():
    x = torch.zeros(4, device="npu")
    graph, y = captured(lambda: x + 1)
    kept = []
    for i in range(3):
        x.fill_(float(i))
        graph.replay()
        kept.append(y.clone())
    return torch.stack(kept).sum().item()


def change_of_itself():
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)  # finds: LINT-17
    graph.replay()
    before = y
    x.fill_(3.0)
    graph.replay()
    return (y - before).abs().sum().item()


def change():
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)
    graph.replay()
    before = y.clone()
    x.fill_(3.0)
    graph.replay()
    return (y - before).abs().sum().item()


def timed_and_read_once():
    x = torch.ones(4, device="npu")
    graph, y = captured(lambda: x * 2)
    for _ in range(5):
        graph.replay()
    return (y * y).sum().item()


class Keeps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 2)
        self.kept = None

    def forward(self, t):
        self.kept = self.first(t)  # finds: LINT-46
        return self.second(self.kept)


def rebound():
    model, t = Keeps().npu(), torch.ones(2, 4, device="npu")
    with torch.no_grad():
        graph, _ = captured(lambda: model(t))
        model.kept = torch.full((2, 4), 100.0, device="npu")
        graph.replay()
        return model.kept.sum().item()


class KeepsInPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 2)
        self.register_buffer("kept", torch.zeros(2, 4))

    def forward(self, t):
        self.kept.copy_(self.first(t))
        return self.second(self.kept)


def reset_in_place():
    model, t = KeepsInPlace().npu(), torch.ones(2, 4, device="npu")
    with torch.no_grad():
        graph, _ = captured(lambda: model(t))
        model.kept.fill_(100.0)
        graph.replay()
        return model.kept.sum().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    for run in (overwritten, cloned, stacked, stacked_clones, change_of_itself, change, timed_and_read_once, rebound,
                reset_in_place):
        print(run.__name__, run())
