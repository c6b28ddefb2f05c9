"""A serving loop in pieces: each layer is a graph, eager attention and a graph. One size has no graph."""
import torch
import torch_npu  # noqa: F401

torch.manual_seed(0)
WIDTH, LAYERS, SIZES = 64, 3, (2, 4)
layers = [{name: torch.randn(WIDTH, WIDTH, device="npu") / 8 for name in ("q", "k", "v", "o")} for _ in range(LAYERS)]
hidden = {size: torch.zeros(size, WIDTH, device="npu") for size in SIZES}
graphs = {}


def before(layer, x):
    return x @ layer["q"], x @ layer["k"], x @ layer["v"]


def attend(q, k, v):
    return torch.softmax(q @ k.T, -1) @ v


def after(layer, x, mixed):
    x.copy_(torch.tanh(mixed @ layer["o"]))


for size in SIZES:
    for layer in layers:
        after(layer, hidden[size], attend(*before(layer, hidden[size])))
    torch.npu.synchronize()
    for number, layer in enumerate(layers):
        first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
        with torch.npu.graph(first):
            heads = before(layer, hidden[size])
        mixed = torch.zeros(size, WIDTH, device="npu")
        with torch.npu.graph(second):
            after(layer, hidden[size], mixed)
        graphs[size, number] = first, heads, mixed, second
tokens = []
for step in range(12):
    size = 3 if step % 4 == 3 else 2 + step % 2 * 2
    with torch.profiler.record_function("step"):
        batch = torch.full((size, WIDTH), float(step))
        if size in SIZES:
            x = hidden[size]
            x.copy_(batch, non_blocking=True)  # line: batch
            for number in range(LAYERS):
                first, heads, mixed, second = graphs[size, number]
                first.replay()
                mixed.copy_(attend(*heads))
                second.replay()
        else:
            x = batch.to("npu")
            for layer in layers:
                after(layer, x, attend(*before(layer, x)))
        tokens.append(x.argmax(-1).tolist())  # line: tokens
print(tokens)
