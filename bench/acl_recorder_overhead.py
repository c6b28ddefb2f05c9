#!/usr/bin/env python3
"""Measures the nanoseconds that recording adds to a call of the ACL interface.

Runs build/bin/acl_calls bare and under `acltape record --level acl` in turn, and prints for each
kind of call the medians over the rounds and what recording added at --payload none (the median of the
differences within a round, with the least and the greatest), and what `--device-times` adds to that.
Calling an operator takes ten calls of the interface: tensors and a scalar are made and destroyed
around its two phases. "aclnnAdd,waited" has a wait for the stream after each twenty.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET_NS = 400  # a call of the interface
CALLS = {"aclnnAdd": 10, "aclnnAdd,waited": 10}


def measure(command):
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[0]: float(row[1]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stacks", choices=("top", "full", "none"), default="top")
    parser.add_argument("--check", action="store_true", help="exit 1 when the target is missed")
    args = parser.parse_args()
    binaries = os.path.join(args.build, "bin")
    program = [os.path.join(binaries, "acl_calls")]
    bare, added, timed = {}, {}, {}
    with tempfile.TemporaryDirectory(dir=args.build) as folder:
        record = [os.path.join(binaries, "acltape"), "record", "--force", "--quiet", "--level", "acl",
                  "--payload", "none", "--stacks", args.stacks, "-o", os.path.join(folder, "t.db")]
        for _ in range(args.rounds):
            without, recorded = measure(program), measure([*record, "--", *program])
            with_times = measure([*record, "--device-times", "--", *program])
            for name, time in without.items():
                bare.setdefault(name, []).append(time)
                added.setdefault(name, []).append(recorded[name] - time)
                timed.setdefault(name, []).append(with_times[name] - recorded[name])
    missed = []
    print(f"{'call':>18} | {'bare':>10} | {'added by recording':>28} | {'an interface call':>17} | "
          f"{'added by --device-times':>28} | {'ratio':>5}")
    for name, times in bare.items():
        median = statistics.median(added[name])
        spread = f"[{min(added[name]):.0f}, {max(added[name]):.0f}]"
        each = median / CALLS.get(name, 1)
        more = statistics.median(timed[name])
        more_spread = f"[{min(timed[name]):.0f}, {max(timed[name]):.0f}]"
        recorded = statistics.median(times) + median
        print(f"{name:>18} | {statistics.median(times):7.0f} ns | {median:9.0f} ns {spread:>15} | "
              f"{each:14.0f} ns | {more:9.0f} ns {more_spread:>15} | {(recorded + more) / recorded:5.2f}")
        if each > TARGET_NS:
            missed.append(f"{name}: {each:.0f} ns added, target {TARGET_NS} ns a call")
    for miss in missed:
        print("missed:", miss)
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
