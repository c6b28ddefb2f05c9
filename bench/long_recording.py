#!/usr/bin/env python3
"""Records a long program and prints, while it runs, what the recording costs and holds.

    bench/long_recording.py calls --calls 30000000 --minutes 60     --payload none, a training loop
    bench/long_recording.py values --bytes 5G                       --payload all, new values in each call

The program paces itself so that its calls come evenly over the time. It takes its own thread's processor
time around each step, so what else the machine does is not in the cost. Before, the same program runs
unrecorded for a moment: the cost of a step is a ratio against that. Every tenth of the run is a row:

    steps       of the program so far
    us/step     processor time of the program's thread for a step, the median of the tenth
    ratio       against the unrecorded program
    program MB, collector MB    resident memory that is no file, at the end of the tenth
    trace MB, spool MB          what the files take on the disk
    info s, query s             how long a second process took to read the trace meanwhile, and
    calls read                  how many calls it saw

The last line has the time from the program's end to the recorder's, the greatest resident memory of the
collector, and how many calls the trace holds, lost and complete.
"""
import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from recorder_overhead import ROOT, find_python

BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(ROOT, "build", "bin", "acltape"))
MIB = 1 << 20
ROWS = 10


# The program: this file itself with "run" as its first word.

def training_step(torch):
    """One step of a small network: forward, backward, update."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x, y = torch.randn(4, 8), torch.randn(4, 4)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def values_step(torch):
    """One new tensor of a mebibyte that no compression makes smaller, and a sum that reads it."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    return lambda: torch.randint(-2**62, 2**62, (MIB // 8,)).sum()


def run(kind, steps, seconds, out):
    """Makes the steps evenly over the time (0: as fast as they come) and writes a line per second to `out`."""
    import torch
    step = {"calls": training_step, "values": values_step}[kind](torch)
    begin = time.monotonic()
    said, costs = begin, []
    with open(out, "w", buffering=1) as lines:
        for done in range(1, steps + 1):
            cost = time.thread_time_ns()
            step()
            costs.append(time.thread_time_ns() - cost)
            now = time.monotonic()
            if now - said >= 1 or done == steps:
                lines.write(json.dumps([done, statistics.median(costs) / 1000]) + "\n")
                said, costs = now, []
            ahead = begin + done * seconds / steps - now
            if ahead > 0.01:
                time.sleep(ahead)


# The recording.

def private_mib(pid):
    try:
        text = open(f"/proc/{pid}/status").read()
    except OSError:
        return None
    anonymous = re.search(r"RssAnon:\s+(\d+) kB", text)
    return int(anonymous.group(1)) / 1024 if anonymous else None


def disk_mib(path):
    try:
        return os.stat(path).st_blocks * 512 / MIB
    except OSError:
        return 0.0


def timed(words):
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True)
    return time.monotonic() - begin, done


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    return int(children[0]) if children else None


def calls_of_a_step(python, kind, folder):
    """Calls of one step, from a short recording, and the cost of a step unrecorded."""
    words = [python, __file__, "run", kind]
    counts = []
    for steps in (100, 200):
        trace = os.path.join(folder, "short.db")
        subprocess.run([BINARY, "record", "--quiet", "--force", "--payload", "none", "-o", trace, "--", *words,
                        str(steps), "0", os.path.join(folder, "short")], check=True)
        counts.append(sqlite3.connect(trace).execute("SELECT count(*) FROM call").fetchone()[0])
    alone = os.path.join(folder, "alone")
    subprocess.run([*words, "20000" if kind == "calls" else "300", "5", alone], check=True)
    return (counts[1] - counts[0]) / 100, statistics.median(cost for _, cost in lines_of(alone))


def record(python, kind, steps, seconds, payload, base, folder):
    trace, progress = os.path.join(folder, "long.db"), os.path.join(folder, "progress")
    recorder = subprocess.Popen([BINARY, "record", "--force", "--payload", payload, "-o", trace, "--",
                                 python, __file__, "run", kind, str(steps), str(seconds), progress],
                                stderr=open(os.path.join(folder, "recorder.err"), "w"))
    print(f"{'steps':>9} {'us/step':>8} {'ratio':>6} {'program MB':>10} {'collector MB':>12} {'trace MB':>9} "
          f"{'spool MB':>9} {'info s':>7} {'query s':>8} {'calls read':>11}", flush=True)
    shown = said = 0
    peak = [0.0, 0.0]
    ended = None
    while recorder.poll() is None:
        time.sleep(0.5)
        program = child_of(recorder.pid) if ended is None else None
        peak = [max(before, private_mib(pid) or 0) for before, pid in zip(peak, (program or 0, recorder.pid))]
        lines = lines_of(progress)
        if not lines:
            continue
        done = lines[-1][0]
        if done == steps and ended is None and (program is None or private_mib(program) is None):
            ended = time.monotonic()
        if done * ROWS // steps <= shown:
            continue
        shown = done * ROWS // steps
        costs, said = [cost for _, cost in lines[said:]], len(lines)
        info, _ = timed([BINARY, "info", trace])
        query, answer = timed([BINARY, "query", trace, "SELECT count(*) FROM call", "--format", "csv"])
        seen = answer.stdout.split()[-1] if answer.returncode == 0 and answer.stdout else f"code {answer.returncode}"
        cost = statistics.median(costs)
        print(f"{done:9} {cost:8.1f} {cost / base:6.2f} {private_mib(program) or 0:10.0f} "
              f"{private_mib(recorder.pid) or 0:12.0f} {disk_mib(trace) + disk_mib(trace + '-wal'):9.0f} "
              f"{disk_mib(trace + '.spool'):9.0f} {info:7.2f} {query:8.2f} {seen:>11}", flush=True)
    end = time.monotonic() - (ended or time.monotonic())
    print(open(os.path.join(folder, "recorder.err")).read().strip())
    counted = sqlite3.connect(trace).execute("SELECT count(*) FROM call").fetchone()[0]
    print(f"end: exit code {recorder.returncode}, {end:.1f} s after the program; greatest memory: "
          f"program {peak[0]:.0f} MiB, "
          f"collector {peak[1]:.0f} MiB; the trace holds {counted:,} calls in {os.path.getsize(trace) / MIB:,.0f} MiB")
    for name in ("top_ops", "steps", "host_gaps"):
        took, done = timed([BINARY, "query", trace, "--name", name])
        print(f"query --name {name}: {took:.2f} s, exit code {done.returncode}")
    took, done = timed([BINARY, "info", trace])
    print(f"info: {took:.2f} s, exit code {done.returncode}")
    return recorder.returncode


def size(text):
    units = {"K": 1 << 10, "M": MIB, "G": 1 << 30}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1] in units else int(text)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "run":
        kind, steps, seconds, out = sys.argv[2:]
        return run(kind, int(steps), float(seconds), out)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("calls", "values"))
    parser.add_argument("--calls", type=int, default=30_000_000)
    parser.add_argument("--minutes", type=float, default=60, help="over which the calls come")
    parser.add_argument("--bytes", type=size, default=size("5G"), help="of values")
    parser.add_argument("--folder", help="for the trace, which stays there; else a temporary one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        python = find_python()
        each, base = calls_of_a_step(python, args.kind, folder)
        print(f"{each:.0f} calls in a step, which takes {base:.1f} us of processor time unrecorded", flush=True)
        if args.kind == "calls":
            return record(python, "calls", int(args.calls / each), args.minutes * 60, "none", base, folder)
        return record(python, "values", args.bytes // MIB, 0, "all", base, folder)


if __name__ == "__main__":
    sys.exit(main())
