#!/usr/bin/env python3
"""Eight shapes of programs that mark their own iterations, for step_shapes_test.py.

    step_shapes.py SHAPE

Each iteration runs under record_function("step mark") and has a read by the host after an optimiser,
or at its end.
"""
import sys

import torch
from torch import nn
from torch.profiler import record_function


def mark():
    return record_function("step mark")


def perceptron(width=16):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh(),
                         nn.Linear(width, 3))


def batch(size=32):
    return torch.randn(size, 8), torch.randint(3, (size,))


def fit(model, optimizer):
    inputs, labels = batch()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    print(loss.item())


def train(optimizer_class, **settings):
    model = perceptron()
    optimizer = optimizer_class(model.parameters(), **settings)
    for _ in range(5):
        with mark():
            fit(model, optimizer)


def sgd():
    train(torch.optim.SGD, lr=0.1, momentum=0.9)


def adam():
    train(torch.optim.Adam, lr=0.01)


def gan():
    """Two optimisers, three iterations; the read is after the first optimiser."""
    generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12))
    critic = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    of_generator = torch.optim.RMSprop(generator.parameters())
    of_critic = torch.optim.RMSprop(critic.parameters())
    judge = nn.BCEWithLogitsLoss()
    real, fake = torch.ones(16, 1), torch.zeros(16, 1)
    for _ in range(3):
        with mark():
            images = torch.randn(16, 12)
            made = generator(torch.randn(16, 8))
            of_critic.zero_grad()
            loss = judge(critic(images), real) + judge(critic(made.detach()), fake)
            loss.backward()
            of_critic.step()
            print(loss.item())
            of_generator.zero_grad()
            loss = judge(critic(made), real)
            loss.backward()
            of_generator.step()


def accumulation():
    """Four small batches before each step of the optimiser, gradients cleared at the end."""
    model = perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(4):
        with mark():
            for _ in range(4):
                inputs, labels = batch()
                loss = nn.functional.cross_entropy(model(inputs), labels) / 4
                loss.backward()
            optimizer.step()
            print(loss.item())
            optimizer.zero_grad(set_to_none=False)


def cache():
    """Greedy decoding with a cache of fixed size."""
    embedding, project = nn.Embedding(20, 16), nn.Linear(16, 48)
    join, head = nn.Linear(16, 16), nn.Linear(16, 20)
    keys, values = torch.zeros(12, 16), torch.zeros(12, 16)
    positions = torch.arange(12)
    token = torch.zeros(1, dtype=torch.long)
    with torch.no_grad():
        for position in range(6):
            with mark():
                hidden = embedding(token)
                query, key, value = project(hidden).chunk(3, dim=-1)
                keys[position] = key[0]
                values[position] = value[0]
                scores = query @ keys.t() / 4
                scores = scores.masked_fill(positions > position, float("-inf"))
                hidden = hidden + join(torch.softmax(scores, dim=-1) @ values)
                token = head(hidden).argmax(dim=-1)
                print(token.item())


def validation():
    """Every third step is followed by a validation of two batches."""
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held = [batch() for _ in range(2)]
    for step in range(9):
        with mark():
            fit(model, optimizer)
            if step % 3 == 2:
                with torch.no_grad():
                    right = sum((model(x).argmax(dim=1) == y).sum() for x, y in held)
                    print(right.item())


def warm_up():
    """The first three steps train the head alone; then all is trained, and gradients clipped."""
    body, head = perceptron(), nn.Linear(3, 3)
    first = torch.optim.SGD(head.parameters(), lr=0.1)
    second = torch.optim.RMSprop([*body.parameters(), *head.parameters()], lr=0.01)
    for step in range(8):
        with mark():
            inputs, labels = batch()
            warm = step < 3
            optimizer = first if warm else second
            optimizer.zero_grad()
            with torch.set_grad_enabled(not warm):
                features = body(inputs)
            loss = nn.functional.cross_entropy(head(features), labels)
            loss.backward()
            if not warm:
                nn.utils.clip_grad_norm_(body.parameters(), 1.0)
            optimizer.step()
            print(loss.item())


def by_hand():
    """No optimiser: the program updates its parameters itself and keeps their running mean."""
    model = perceptron()
    means = [parameter.detach().clone() for parameter in model.parameters()]
    data, labels = batch(160)
    for step in range(5):
        with mark():
            part = slice(32 * step, 32 * step + 32)
            loss = nn.functional.cross_entropy(model(data[part]), labels[part])
            loss.backward()
            with torch.no_grad():
                for parameter, _ in zip(model.parameters(), means):
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
                for parameter, mean in zip(model.parameters(), means):
                    mean.lerp_(parameter, 0.1)
            print(loss.item())


SHAPES = (sgd, adam, gan, accumulation, cache, validation, warm_up, by_hand)


if __name__ == "__main__":
    torch.manual_seed(5)
    {shape.__name__: shape for shape in SHAPES}[sys.argv[1]]()
