#!/usr/bin/env python3
"""What recording costs: ratios to the unrecorded program, next to PyTorch's own instruments.

Measures, in one run, a loop of four-element additions and the four workloads. Each round runs every
variant once, in a process of its own and in shuffled order, beside the unrecorded program of the
same round; the table shows the median ratio over the rounds with the least and the greatest one.
Times are per iteration of the loop and per step of a workload, steady state. Bytes per call are the
size of the trace over its calls, at --payload none.
"""
import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEASURED = os.path.join(ROOT, "bench", "measured.py")

# name, arguments of measured.py, the ratio that `--payload none` should stay under
PROGRAMS = [
    ("add loop", ["loop"], 1.35),
    ("resnet18", ["resnet18.py", "--option=--batches", "--few=2", "--many=8"], 1.05),
    ("decoder", ["decoder.py", "--option=--tokens", "--few=8", "--many=32"], 1.05),
    ("mlp_train", ["mlp_train.py", "--option=--steps", "--few=10", "--many=110"], 1.05),
    ("bert_layer", ["bert_layer.py", "--option=--batches", "--few=4", "--many=28"], 1.05),
]
RECORDED = ["none", "digest", "inputs"]
INSTRUMENTS = ["profiler", "profiler_shapes", "execution_graph"]


def find_python():
    candidates = [os.environ.get("ACLTAPE_PYTHON"), "python3", "/usr/bin/python3"]
    for candidate in filter(None, candidates):
        try:
            if subprocess.run([candidate, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
                return candidate
        except OSError:
            continue
    sys.exit("recorder_overhead: no python3 imports torch; scripts/setup installs Debian's")


class Bench:
    def __init__(self, python, acltape, folder, seconds):
        self.python, self.acltape, self.folder = python, acltape, folder
        self.seconds = seconds
        self.bytes_per_call = {}

    def measure(self, name, arguments, variant):
        """ns per iteration or step."""
        kind = ["loop"] if arguments == ["loop"] else [
            "workload", os.path.join(ROOT, "bench", "workloads", arguments[0]), *arguments[1:]]
        out = os.path.join(self.folder, "time.json")
        command = [self.python, MEASURED, out, *kind, f"--seconds={self.seconds}"]
        if variant in RECORDED:
            trace = os.path.join(self.folder, "trace.db")
            command = [self.acltape, "record", "--force", "--quiet", "--payload", variant,
                       "-o", trace, "--", *command]
        elif variant != "baseline":
            command.append(f"--instrument={variant}")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if variant == "none":
            connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
            calls, = connection.execute("SELECT count(*) FROM call").fetchone()
            connection.close()
            if calls == 0:
                sys.exit(f"recorder_overhead: nothing was recorded of {name}; see `acltape info`")
            self.bytes_per_call[name] = os.path.getsize(trace) / calls
        if variant in RECORDED:
            os.unlink(trace)
        with open(out) as file:
            return json.load(file)["ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="to measure within a process")
    parser.add_argument("--threads", type=int,
                        help="intra-op threads of the programs; default: their own choice")
    parser.add_argument("--only", help="only programs whose name contains this")
    parser.add_argument("--no-instruments", action="store_true", help="leave PyTorch's own out")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the variants")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()

    if args.threads:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[variable] = str(args.threads)
    python = find_python()
    variants = RECORDED + ([] if args.no_instruments else INSTRUMENTS)
    shuffle = random.Random(args.seed).shuffle
    missed = []
    print(f"{python}, {args.rounds} rounds, ratio to the unrecorded program: median [least, greatest]")
    header = ["program", "unrecorded"] + variants + ["bytes/call"]
    print(" | ".join(f"{word:>18}" for word in header), flush=True)
    with tempfile.TemporaryDirectory(dir=args.build) as folder:
        bench = Bench(python, os.path.join(args.build, "bin", "acltape"), folder, args.seconds)
        for name, arguments, target in PROGRAMS:
            if args.only and args.only not in name:
                continue
            baselines, ratios = [], {variant: [] for variant in variants}
            for _ in range(args.rounds):
                times = {}
                order = ["baseline"] + variants
                shuffle(order)
                for variant in order:
                    times[variant] = bench.measure(name, arguments, variant)
                baselines.append(times["baseline"])
                for variant in variants:
                    ratios[variant].append(times[variant] / times["baseline"])
            cells = [name, f"{statistics.median(baselines) / 1e3:.2f} us"]
            for variant in variants:
                values = ratios[variant]
                cells.append(f"{statistics.median(values):.2f} [{min(values):.2f}, {max(values):.2f}]")
            cells.append(f"{bench.bytes_per_call[name]:.0f}")
            print(" | ".join(f"{cell:>18}" for cell in cells), flush=True)
            if statistics.median(ratios["none"]) > target:
                missed.append(f"{name}: {statistics.median(ratios['none']):.2f} at none, target {target}")
            if name == "add loop" and bench.bytes_per_call[name] > 120:
                missed.append(f"{name}: {bench.bytes_per_call[name]:.0f} bytes per call, target 120")
    for miss in missed:
        print("missed:", miss)
    if not missed:
        print("targets met: at most 1.35 on the loop and 1.05 on models at none, 120 bytes per call")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
