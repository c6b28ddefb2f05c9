#!/usr/bin/env python3
"""Collectives of the soft device beside gloo's, on the same tensors, through torch.distributed.

    bench/collectives.py --ranks 2 --pairs 30

Each pair runs a collective of gloo on tensors of the CPU, then the same one of hccl on the soft device, and
takes the ratio of their times (below 1: the soft device is faster). Printed are medians over the pairs, and in
brackets the interval that holds the median with a probability of 95 % (by ranks of the sorted pairs). "one copy"
is the time of hccl over that of one thread that copies the bytes which a rank reads and writes, while nothing else
runs; "all copy" is the same while each rank does so at once, because ranks share the machine's memory. A
collective's time is that from a barrier until all ranks have their results.

ACLTAPE_BINARY names the program, ACLTAPE_TORCH2_PYTHON an interpreter with torch and torch_npu
(`scripts/torch2-python` makes one).
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(ROOT, "build", "bin", "acltape"))
PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON", os.path.join(ROOT, "build", "venv-torch-2.13.0", "bin", "python3"))
KINDS = ("all_reduce", "all_gather", "reduce_scatter")
KIB = 1024


def median_interval(values):
    """The median, and the pair of values between which it lies with 95 %."""
    values = sorted(values)
    count = len(values)
    off = int(0.98 * count**0.5)
    return statistics.median(values), values[max(0, count // 2 - off)], values[min(count - 1, count // 2 + off)]


def show(values):
    return "{:.2f} [{:.2f}, {:.2f}]".format(*median_interval(values))


def text_of(size):
    return f"{size // KIB} KiB" if size < KIB * KIB else f"{size // KIB // KIB} MiB"


class Worker:
    """One rank."""

    def __init__(self, rank, options):
        import torch
        import torch.distributed as dist
        import torch_npu  # noqa: F401  (registers the device)

        self.torch, self.dist, self.rank, self.options = torch, dist, rank, options
        torch.set_num_threads(1)
        torch.npu.set_device(rank)
        dist.init_process_group("cpu:gloo,npu:hccl", rank=rank, world_size=options.ranks)

    def call(self, kind, given, taken):
        if kind == "all_reduce":
            self.dist.all_reduce(given)
        elif kind == "all_gather":
            self.dist.all_gather_into_tensor(taken, given)
        else:
            self.dist.reduce_scatter_tensor(taken, given)

    def tensors(self, kind, size, device):
        """What is given has `size` bytes, but for all_gather, which has them at last."""
        elements, ranks = size // 4, self.options.ranks
        given = elements // ranks if kind == "all_gather" else elements
        taken = elements // ranks if kind == "reduce_scatter" else elements
        return self.torch.ones(given, device=device), self.torch.zeros(taken, device=device)

    def time(self, kind, tensors, device):
        """From a barrier until all ranks have the result, in seconds."""
        self.dist.barrier(group=self.gloo)
        begin = time.perf_counter()
        self.call(kind, *tensors)
        if device == "npu":
            self.torch.npu.synchronize()
        self.dist.barrier(group=self.gloo)
        return time.perf_counter() - begin

    def copied(self, kind, size):
        """Half of the bytes that a rank reads and writes: a copy of so many moves as many."""
        share = size / self.options.ranks
        if kind == "all_gather":
            return size  # reads all that is given, its own too, and writes it
        if kind == "reduce_scatter":
            return (size + share) / 2  # reads its share from each rank, and writes it
        return (size + share) / 2 + size - share  # the same, and then the other shares

    def copies(self, kind, size):
        """Times of such a copy: on rank 0 alone, and on all ranks at once."""
        elements = int(self.copied(kind, size)) // 4
        source, target = self.torch.ones(elements), self.torch.zeros(elements)
        alone, at_once = [], []
        for times, ranks in ((alone, 1), (at_once, self.options.ranks)):
            for _ in range(9):
                self.dist.barrier(group=self.gloo)
                begin = time.perf_counter()
                if self.rank < ranks:
                    target.copy_(source)
                times.append(time.perf_counter() - begin)
                self.dist.barrier(group=self.gloo)
        return statistics.median(alone), statistics.median(at_once)

    def run(self):
        self.gloo = self.dist.new_group(backend="gloo")
        if self.rank == 0:
            print("| collective | bytes | gloo, ms | soft hccl, ms | hccl / gloo | hccl / one copy | hccl / all copy |")
            print("|---" * 7 + "|")
        for kind in KINDS:
            for size in self.options.sizes:
                self.row(kind, size * KIB)
        self.dist.destroy_process_group()

    def row(self, kind, size):
        tensors = {device: self.tensors(kind, size, device) for device in ("cpu", "npu")}
        for device in ("cpu", "npu"):
            for _ in range(3):
                self.time(kind, tensors[device], device)
        seen = {device: [] for device in tensors}
        for _ in range(self.options.pairs):
            for device, values in seen.items():
                values.append(self.time(kind, tensors[device], device))
        copies = self.copies(kind, size)
        if self.rank == 0:
            gloo, hccl = seen["cpu"], seen["npu"]
            ratios = show([mine / other for other, mine in zip(gloo, hccl, strict=True)])
            times = " | ".join(f"{1000 * statistics.median(values):.3f}" for values in (gloo, hccl))
            over_copies = " | ".join(f"{statistics.median(hccl) / copy:.2f}" for copy in copies)
            print(f"| {kind} | {text_of(size)} | {times} | {ratios} | {over_copies} |", flush=True)
        self.dist.barrier(group=self.gloo)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 64, 1024, 8192, 65536], help="in KiB")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        Worker(options.rank, options).run()
        return
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29544", "ACLTAPE_SOFT_DEVICES": "8",
                   "PYTHONWARNINGS": "ignore"}
    words = [BINARY, "run", "--", PYTHON, __file__, *sys.argv[1:]]
    ranks = [subprocess.Popen([*words, "--rank", str(rank)], env=environment) for rank in range(options.ranks)]
    sys.exit(max(rank.wait() for rank in ranks))


if __name__ == "__main__":
    main()
