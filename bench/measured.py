#!/usr/bin/env python3
"""Runs one program under one instrument, in turns, and writes how long it took, as JSON lines.

    measured.py OUT loop [--device npu] [--in-place BYTES] [--instrument I] [--iterations N]
    measured.py OUT workload PATH --option --steps --few 4 --many 16 [--instrument I] [-- args...]

`loop` times `a + b` on four elements, or with --in-place `x.add_(1)` on so many bytes. On an NPU the
iterations end with one synchronisation. `workload` imports a script of bench/workloads, calls its
main() with few and with many steps in turn, and takes the difference: construction of the model,
imports and first-time work cancel out, and the script needs no timing code. The recorder is no
instrument here: it comes from outside, by running this file under `acltape record`.

Each line on standard input is a turn: it measures for a while and writes one list of times, in ns,
to OUT, which may be a pipe. So several such processes can measure alternately on one machine, and
what disturbs it disturbs all of them. A line "run N" runs N iterations or steps once, and writes how
long that took. The end of standard input ends the program.

A time is three: of the wall clock, of the main thread's processor time, and of the processor time of all
threads of the program. Other programs of a busy machine do not count in the last two, but neither does
waiting for another thread. Times end before an instrument processes what it collected.
"""
import argparse
import contextlib
import functools
import importlib.util
import io
import json
import os
import sys
import tempfile
import time

import torch


@contextlib.contextmanager
def execution_graph():
    try:
        from torch.profiler import ExecutionTraceObserver as Observer  # since 2.0
    except ImportError:
        from torch.profiler.profiler import ExecutionGraphObserver as Observer
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    observer = Observer()
    observer.register_callback(path)
    observer.start()
    try:
        yield
    finally:
        observer.stop()
        observer.unregister_callback()
        os.unlink(path)


@functools.cache
def msprobe_debugger():
    """msprobe's debugger, of which a process has one, and the folder that it writes into."""
    from msprobe.pytorch import PrecisionDebugger
    folder = tempfile.TemporaryDirectory()
    options = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    path = os.path.join(folder.name, "config.json")
    with open(path, "w") as config:
        json.dump({"task": "statistics", "level": "L1", "dump_path": folder.name, "rank": [], "step": [],
                   "statistics": options}, config)
    return PrecisionDebugger(config_path=path), folder


@contextlib.contextmanager
def msprobe_statistics():
    """Statistics of every operator's inputs and outputs; msprobe is found on sys.path."""
    debugger, _ = msprobe_debugger()
    debugger.start()
    try:
        yield
    finally:
        debugger.stop()
        debugger.step()


def profiler(**options):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


INSTRUMENTS = {
    "nothing": contextlib.nullcontext,
    "profiler": profiler,
    "profiler_shapes": lambda: profiler(record_shapes=True),
    "profiler_stacks": lambda: profiler(with_stack=True),
    "execution_graph": execution_graph,
    "msprobe": msprobe_statistics,
}


def clocks():
    return time.perf_counter_ns(), time.thread_time_ns(), time.process_time_ns()


def difference(late, early, steps=1):
    return [(second - first) / steps for second, first in zip(late, early)]


def take_turns(run, measure, seconds, out):
    """Serves the lines of standard input; run(N) runs N steps and returns times in ns, measure() in ns a step."""
    for line in sys.stdin:
        word, _, steps = line.partition(" ")
        times, start = [], time.monotonic()
        if word == "run":
            times.append(run(int(steps)))
        while not times or (word != "run" and time.monotonic() - start < seconds):
            times.append(measure())
        out.write(json.dumps(times) + "\n")
        out.flush()


def time_loop(instrument, iterations, seconds, device, in_place, out):
    if device == "npu":
        import torch_npu  # noqa: F401  (registers the device)
    a, b = torch.ones(4, device=device), torch.ones(4, device=device)
    x = torch.ones(in_place // 4, device=device)
    synchronize = torch.npu.synchronize if device == "npu" else (lambda: None)

    def run(count):
        start = clocks()
        if in_place:
            for _ in range(count):
                x.add_(1)
        else:
            for _ in range(count):
                a + b
        synchronize()
        return difference(clocks(), start)

    def measure():
        with instrument():
            return difference(run(iterations), [0] * 3, iterations)

    with torch.no_grad():
        run(min(iterations, 20000))
        take_turns(run, measure, seconds, out)


def time_workload(instrument, path, option, few, many, seconds, extra, out):
    sys.path.insert(0, os.path.dirname(path))  # as if the script were run
    spec = importlib.util.spec_from_file_location("workload", path)
    workload = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(workload)

    def run(steps):
        sys.argv = [path, option, str(steps), *extra]
        with contextlib.redirect_stdout(io.StringIO()), instrument():
            start = clocks()
            workload.main()
            return difference(clocks(), start)

    def measure():
        short = run(few)
        return difference(run(many), short, many - few)

    run(few)
    take_turns(run, measure, seconds, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="file or pipe for the times")
    kinds = parser.add_subparsers(dest="kind", required=True)
    loop = kinds.add_parser("loop")
    loop.add_argument("--iterations", type=int, default=100000)
    loop.add_argument("--device", default="cpu", help="cpu, or npu with torch_npu installed")
    loop.add_argument("--in-place", type=int, default=0, metavar="BYTES",
                      help="x.add_(1) on so many bytes")
    workload = kinds.add_parser("workload")
    workload.add_argument("path")
    workload.add_argument("--option", required=True, help="the option that sets the steps")
    workload.add_argument("--few", type=int, required=True)
    workload.add_argument("--many", type=int, required=True)
    for kind in (loop, workload):
        kind.add_argument("--instrument", choices=INSTRUMENTS, default="nothing")
        kind.add_argument("--msprobe", help="the folder that mindstudio-probe was installed into")
        kind.add_argument("--seconds", type=float, default=0.1, help="the length of a turn")
    args, extra = parser.parse_known_args()

    instrument = INSTRUMENTS[args.instrument]
    if args.msprobe:
        sys.path.append(args.msprobe)  # last: what it depends on must not replace the program's own
    with open(args.out, "w") as out:
        if args.kind == "loop":
            time_loop(instrument, args.iterations, args.seconds, args.device, args.in_place, out)
        else:
            extra = [word for word in extra if word != "--"]
            time_workload(instrument, args.path, args.option, args.few, args.many, args.seconds,
                          extra, out)


if __name__ == "__main__":
    main()
