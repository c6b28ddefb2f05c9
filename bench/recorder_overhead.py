#!/usr/bin/env python3
"""Measures the cost of recording against the unrecorded program, next to other instruments.

One run measures a loop of four-element additions and the four workloads. A round starts one
process for each variant and one for the unrecorded program, and lets them measure in turns, a tenth
of a second each and in shuffled order: what slows the machine down for a while slows all of them. A
round's ratio is that of the medians over its turns; the table shows the median ratio over the rounds,
half the width of its 95 % confidence interval (bootstrap) and the least and the greatest ratio. Where a
process's speed depends on where its memory came to lie, many short rounds (--rounds 60 --turns 5) say
more than few long ones. Times are per iteration of the loop and per step of a workload, steady state.
Bytes per call are the size of the trace over its calls, at --payload none.

After its turn a recorded process is left until its collector is idle again. Within a turn most records
wait in the collector's memory, as they do for the first 64 MiB of a program's own; with turns of some
seconds (--seconds 4) they are written while the program runs.

With --npu the programs run on torch_npu ($ACLTAPE_TORCH2_PYTHON) on the soft device, and both levels are
recorded. Kernels run on the CPU there, beside the program, and hide what recording adds. With --host-only
as well the soft device carries no kernel out (profile host_only): the path of the host alone is timed, as
on a device that the host never waits for. Values mean nothing then.

With --against BUILD the recorder of another build or installation is measured beside this one's, in the
same rounds: columns "before:none" and so on. Where the programs need a kit, it has to have added its own.

Beside the recorder stand torch.profiler and the observer of execution graphs, and with --msprobe FOLDER the
statistics of msprobe (level L1, operators), installed before by
`$ACLTAPE_TORCH2_PYTHON -m pip install --target FOLDER mindstudio-probe`.
"""
import argparse
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time

from recorded_programs import (HOST_ONLY_PROGRAMS, NPU_PROGRAMS, PROGRAMS, RECORDED, ROOT, MeasuredProcess,
                               ProgramEnded, find_python)

INSTRUMENTS = ["profiler", "profiler_shapes", "profiler_stacks", "execution_graph", "msprobe"]
# The clocks of measured.py's times.
CLOCKS = ["wall", "main", "process"]
# The ratio that a variant should stay under: on the programs of PyTorch alone, and on those of --host-only.
LOOP, MODEL = {"none": 1.35}, {"none": 1.05}
TARGETS = {"add loop": LOOP, "resnet18": MODEL, "decoder": MODEL, "mlp_train": MODEL, "bert_layer": MODEL}
EAGER = {"none": 1.05, "inputs": 1.10, "digest": 1.15}
GRAPH = {"none": 1.01, "inputs": 1.02, "digest": 1.05}
HOST_ONLY_TARGETS = {"add loop": {"none": 1.15, "inputs": 1.25}, "decoder": EAGER, "mlp_train": EAGER,
                     "decoder, graph": GRAPH, "npu_streams, graph": GRAPH,
                     "add_ of 4 KiB, CPU": {"none": 1.05, "inputs": 1.10}}
BYTES_PER_CALL = 120  # of the add loop's trace, at most
KEPT_PER_SECOND = 1e9  # bytes of values that `all` should keep, at least


def judged(ratios):
    """The median with half the width of its 95 % confidence interval, which a single round has none of."""
    if len(ratios) == 1:
        return f"{ratios[0]:.2f}"
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.2f} ±{(medians[1949] - medians[50]) / 2:.2f}"


class Variant(MeasuredProcess):
    """One process of a round, which measures when it is told to."""

    def __init__(self, bench, arguments, variant):
        options = []
        loop = arguments[0] == "loop"
        if loop and variant in INSTRUMENTS and "--device=npu" not in arguments:
            options.append("--iterations=10000")  # a profile of 100,000 operators takes ten seconds to end
        if variant == "msprobe":
            options += ["--msprobe", bench.msprobe]
            options += ["--iterations=300"] if loop else []  # half a millisecond each
        before, _, way = variant.rpartition(":")
        folder = os.path.join(bench.folder, before)
        os.makedirs(folder, exist_ok=True)
        super().__init__(bench.against if before else bench.acltape, bench.python, arguments, way, folder,
                         bench.seconds, options)
        self.name, self.way, self.times = variant, way, []

    def measure(self):
        times = self.turn()
        self.settle()
        return times

    def settle(self):
        """Waits until the collector has written what waited: it would slow the next turn."""
        def spent():
            with open(f"/proc/{self.process.pid}/stat") as stat:
                return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))

        before, now = None, spent() if self.way in RECORDED else None
        while now != before:
            time.sleep(0.05)
            before, now = now, spent()

    def end(self):
        """Ends the process; the size of its trace over its calls, if it made one."""
        super().end()
        if self.way not in RECORDED:
            return None
        connection = sqlite3.connect(f"file:{self.trace}?mode=ro", uri=True)
        calls, = connection.execute("SELECT count(*) FROM call").fetchone()
        connection.close()
        if (calls == 0) != (self.way == "closed"):
            sys.exit(f"recorder_overhead: {self.name} recorded {calls} calls; see `acltape info`")
        size = os.path.getsize(self.trace)
        os.unlink(self.trace)
        return size / calls if calls else None


class Bench:
    def __init__(self, args, python, folder):
        self.python, self.acltape = python, os.path.join(args.build, "bin", "acltape")
        self.against = args.against and os.path.join(args.against, "bin", "acltape")
        self.folder, self.turns, self.seconds = folder, args.turns, args.seconds
        self.msprobe = args.msprobe
        self.shuffle = random.Random(args.seed).shuffle
        self.bytes_per_call = {}

    def round(self, program, arguments, variants):
        """By variant that can run it, ns per iteration or step by clock, measured side by side."""
        running = [Variant(self, arguments, variant) for variant in variants]
        for variant in list(running):
            try:
                variant.measure()  # imports, first-time work
            except ProgramEnded:
                if variant.name not in INSTRUMENTS:
                    raise
                variant.end()
                running.remove(variant)
        for _ in range(self.turns):
            self.shuffle(running)
            for variant in running:
                variant.times += variant.measure()
        for variant in running:
            size = variant.end()
            if variant.name == "none":
                self.bytes_per_call[program] = size
        return {variant.name: dict(zip(CLOCKS, map(statistics.median, zip(*variant.times))))
                for variant in running}


def misses(name, ratios, targets):
    """Prints each target of a program with its figure, met or missed; the missed ones."""
    missed = []
    for variant, target in targets.items():
        if variant not in ratios:
            continue
        met = statistics.median(ratios[variant]) <= target
        text = f"{name}, {variant}: {judged(ratios[variant])}, target {target:.2f}"
        print(f"    target {'met' if met else 'missed'}: {text}", flush=True)
        missed += [] if met else [text]
    return missed


def measured(bench, args, name, arguments, variants):
    """Measures a program, prints a row for each clock and returns the first clock's ratios by variant."""
    rounds = [bench.round(name, arguments, ["baseline"] + variants) for _ in range(args.rounds)]

    def ratios(clock):
        return {variant: [times[variant][clock] / times["baseline"][clock] for times in rounds
                          if variant in times] for variant in variants}

    for clock in args.clocks:
        alone = statistics.median(times["baseline"][clock] for times in rounds)
        cells = [name if clock == "wall" else f"{name} ({clock})", f"{alone / 1e3:.2f} us"]
        for values in ratios(clock).values():
            cells.append(f"{judged(values)} [{min(values):.2f}, {max(values):.2f}]" if values else "fails")
        cells.append(f"{bench.bytes_per_call[name]:.0f}")
        print(" | ".join(f"{cell:>26}" for cell in cells), flush=True)
    written = [int(word.partition("=")[2]) for word in arguments if word.startswith("--in-place=")]
    if written and "all" in variants:
        speed = written[0] / statistics.median(times["all"]["wall"] for times in rounds) * 1e9
        met = speed >= KEPT_PER_SECOND
        print(f"    target {'met' if met else 'missed'}: {name}, all: {speed / 1e6:.0f} MB of values a "
              f"second, target {KEPT_PER_SECOND / 1e6:.0f}", flush=True)
    return ratios(args.clocks[0])


def programs_of(args):
    """The programs by name, their targets, and the ways to record that are measured."""
    if args.host_only:
        return HOST_ONLY_PROGRAMS, HOST_ONLY_TARGETS, ["none", "digest", "inputs", "all"]
    if args.npu:
        return NPU_PROGRAMS, {}, ["no_lines", "none", "stacks", "digest", "inputs", "closed"]
    return PROGRAMS, TARGETS, ["no_lines", "none", "stacks", "digest", "inputs", "closed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--against", metavar="BUILD", help="also measure the recorder of this build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=20, help="of each process in a round")
    parser.add_argument("--seconds", type=float, default=0.1, help="the length of a turn")
    parser.add_argument("--clocks", nargs="+", choices=CLOCKS, default=["wall"],
                        help="what times are of, a row each: the wall clock, or processor time of the main "
                             "thread or of all threads of the program, which say more on a busy machine. "
                             "Targets are held against the first")
    parser.add_argument("--threads", type=int,
                        help="intra-op threads of the programs; default: their own choice")
    parser.add_argument("--only", help="only programs whose name contains this")
    parser.add_argument("--no-instruments", action="store_true", help="leave other instruments out")
    parser.add_argument("--payloads", nargs="+", choices=RECORDED,
                        help="ways to record that are measured; none always is")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the variants")
    parser.add_argument("--npu", action="store_true", help="programs of torch_npu, on the soft device")
    parser.add_argument("--host-only", action="store_true",
                        help="with --npu: the soft device carries no kernel out")
    parser.add_argument("--msprobe", metavar="FOLDER", help="where mindstudio-probe is installed")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()

    if args.host_only and not args.npu:
        parser.error("--host-only is a profile of the soft device; give --npu as well")
    if args.host_only:
        os.environ["ACLTAPE_SOFT_PROFILE"] = "host_only"
    if args.threads:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[variable] = str(args.threads)
    python = find_python(args.npu)
    programs, targets, payloads = programs_of(args)
    payloads = args.payloads or payloads
    variants = [policy for policy in RECORDED if policy == "none" or policy in payloads]
    if args.against:
        variants += [f"before:{variant}" for variant in variants]
    if not args.no_instruments:
        variants += INSTRUMENTS
        if not args.msprobe or not os.path.isdir(os.path.join(args.msprobe, "msprobe")):
            variants.remove("msprobe")
            print(f"msprobe skipped: {args.msprobe or 'no --msprobe FOLDER'} does not hold it; install it with "
                  f"`{python} -m pip install --target FOLDER mindstudio-probe`")
    missed = []
    print(f"{python}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, {args.rounds} "
          "rounds, ratio to the unrecorded program: median ± error [least, greatest]")
    header = ["program", "unrecorded"] + variants + ["bytes/call"]
    print(" | ".join(f"{word:>26}" for word in header), flush=True)
    with tempfile.TemporaryDirectory(dir=args.build) as folder:
        bench = Bench(args, python, folder)
        for name, arguments in programs.items():
            if args.only and args.only not in name:
                continue
            ratios = measured(bench, args, name, arguments, variants)
            missed += misses(name, ratios, targets.get(name, {}))
            if name == "add loop" and not args.npu and bench.bytes_per_call[name] > BYTES_PER_CALL:
                missed.append(f"{name}: {bench.bytes_per_call[name]:.0f} bytes per call, "
                              f"target {BYTES_PER_CALL}")
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")
    for miss in missed:
        print("missed:", miss)
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
