#!/usr/bin/env python3
"""Runs one program under one instrument, in turns, and writes how long it took, as JSON lines.

    measured.py OUT loop [--instrument I] [--iterations N]
    measured.py OUT workload PATH --option --steps --few 4 --many 16 [--instrument I] [-- args...]

`loop` times `a + b` on four elements. `workload` imports a script of bench/workloads, calls its
main() with few and with many steps in turn, and takes the difference: construction of the model,
imports and first-time work cancel out, and the script needs no timing code. The recorder is no
instrument here: it comes from outside, by running this file under `acltape record`.

Each line on standard input is a turn: it measures for a while and writes one list of times, in ns,
to OUT, which may be a pipe. So several such processes can measure alternately on one machine, and
what disturbs it disturbs all of them. The end of standard input ends the program.

Times end before an instrument processes what it collected.
"""
import argparse
import contextlib
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


def profiler(**options):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


INSTRUMENTS = {
    "nothing": contextlib.nullcontext,
    "profiler": profiler,
    "profiler_shapes": lambda: profiler(record_shapes=True),
    "profiler_stacks": lambda: profiler(with_stack=True),
    "execution_graph": execution_graph,
}


def take_turns(measure, seconds, out):
    for _ in sys.stdin:
        times, start = [], time.monotonic()
        while not times or time.monotonic() - start < seconds:
            times.append(measure())
        out.write(json.dumps(times) + "\n")
        out.flush()


def time_loop(instrument, iterations, seconds, out):
    a, b = torch.ones(4), torch.ones(4)

    def loop(count):
        start = time.perf_counter_ns()
        for _ in range(count):
            a + b
        return (time.perf_counter_ns() - start) / count

    with torch.no_grad():
        loop(min(iterations, 20000))

        def measure():
            with instrument():
                return loop(iterations)

        take_turns(measure, seconds, out)


def time_workload(instrument, path, option, few, many, seconds, extra, out):
    sys.path.insert(0, os.path.dirname(path))  # as if the script were run
    spec = importlib.util.spec_from_file_location("workload", path)
    workload = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(workload)

    def run(steps):
        sys.argv = [path, option, str(steps), *extra]
        with contextlib.redirect_stdout(io.StringIO()), instrument():
            start = time.perf_counter_ns()
            workload.main()
            return time.perf_counter_ns() - start

    def measure():
        short = run(few)
        return (run(many) - short) / (many - few)

    run(few)
    take_turns(measure, seconds, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="file or pipe for the times")
    kinds = parser.add_subparsers(dest="kind", required=True)
    loop = kinds.add_parser("loop")
    loop.add_argument("--iterations", type=int, default=100000)
    workload = kinds.add_parser("workload")
    workload.add_argument("path")
    workload.add_argument("--option", required=True, help="the option that sets the steps")
    workload.add_argument("--few", type=int, required=True)
    workload.add_argument("--many", type=int, required=True)
    for kind in (loop, workload):
        kind.add_argument("--instrument", choices=INSTRUMENTS, default="nothing")
        kind.add_argument("--seconds", type=float, default=0.1, help="the length of a turn")
    args, extra = parser.parse_known_args()

    instrument = INSTRUMENTS[args.instrument]
    with open(args.out, "w") as out:
        if args.kind == "loop":
            time_loop(instrument, args.iterations, args.seconds, out)
        else:
            extra = [word for word in extra if word != "--"]
            time_workload(instrument, args.path, args.option, args.few, args.many, args.seconds,
                          extra, out)


if __name__ == "__main__":
    main()
