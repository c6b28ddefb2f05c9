"""A PyTorch program that meets what the recorder's plug-in keeps memory for: hot operators and others,
composites, a backward pass, ranges, modules, memory of NumPy, a second thread.

  torch_calls.py CODE    says what it computed and ends with CODE
"""
import sys
import threading

import numpy
import torch


def work(number, sums):
    outside = numpy.arange(64, dtype=numpy.float32).reshape(8, 8) + number
    x = torch.from_numpy(outside)
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(0.01)
    with torch.profiler.record_function("training"):
        loss = layer(x).pow(2).sum()
        loss.backward()
    outside += 1
    parts = torch.cat([x, x * 2, torch.flip(x, [0])])
    chosen = torch.einsum("ij,kj->ik", parts, x)[:, :3].contiguous()
    deep = x
    for _ in range(20):
        deep = torch.add(deep, 1)
    picked = torch.where(deep > 30, deep, torch.zeros(()))
    total = loss.detach() + chosen.sum() + picked.sum() + torch.tensor(outside.sum()) + layer[0].weight.grad.sum()
    sums[number] = float(total)


def main():
    torch.set_num_threads(1)
    sums = [0, 0]
    work(0, sums)
    thread = threading.Thread(target=work, args=(1, sums))
    thread.start()
    thread.join()
    print("%.4f and %.4f" % tuple(sums), flush=True)
    return int(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
