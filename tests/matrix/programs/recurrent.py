"""A recurrent network that is trained on sequences cut into windows; its state goes from window to window."""
import argparse

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, words)

    def forward(self, window, state):
        scores = []
        for word in window:
            state = self.cell(self.embed(word), state)
            scores.append(self.head(state))
        return torch.stack(scores), state


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    if args.device != "cpu":
        import torch_npu  # noqa: F401  (registers the device)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Reader(20, 16).to(args.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    text = torch.randint(20, (args.steps * 4 + 1, 3))
    state = torch.zeros(3, 16, device=args.device)
    for step in range(args.steps):
        window = text[step * 4:step * 4 + 5].to(args.device)
        scores, state = net(window[:-1], state.detach())
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), window[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
