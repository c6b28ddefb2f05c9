#!/usr/bin/env python3
"""Lets calls of `acltape record` fail, one after the other, and looks how the recording ends.

The n-th call of a kind fails, for n = 1, 2, 3 ... until a run passes without a failure: once alone, and
once with all that follow (failing_calls.c). A run passes when

  - the recorded program prints and returns what it does without recording, or was not started;
  - acltape ends by itself, without a signal, within 30 s;
  - the trace opens and holds every call that the program counted, or says in its ledger and in one
    sentence that it does not; or there is no trace, and one sentence says why;
  - no other file is left.

  failures.py --seconds 50                  a sample of all numbers, from seed 1
  failures.py --all                         every number of every kind; hours
  failures.py --kind write --all
  failures.py --only memory:417:on          this failure alone
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import sys
import threading
import time

import recordings

KINDS = ("memory", "write", "full", "map", "open", "read", "start", "sqlite")  # as in failing_calls.c
GROUPS = ("memory", "write", "map", "open", "read", "start", "sqlite")
GROUP_OF = dict(zip(KINDS, ("memory", "write", "write", "map", "open", "read", "start", "sqlite")))
CALLS = 40  # calls of each of two threads
SECONDS = 20
INSIDE = re.compile(rb"terminate called|what\(\)|std::|basic_string|unexpected failure|Assertion")

# A recording without failures has some of these too.
SUMMARY = re.compile(rb"acltape: (\S+ holds |the steps are |info: |notice: |the program failed )")
# Sentences about parts of a trace, beside the one about the recording itself.
NOTES = re.compile(rb"acltape: (no steps were looked for|PyTorch's tensors on the device|copies of the "
                   rb"adapter's queue|data_loss: )")


def fail_name(kind, number, follow):
    return f"{kind}:{number}" + (":on" if follow else "")


def code_of_program(number):
    """Programs that succeed and programs that fail take turns: acltape's own code must not hide theirs."""
    return 7 if number % 2 else 0


def record(folder, fail, code):
    """Records the program; returns the run, the counts of failing_calls.c and what the program counted."""
    words = [recordings.BINARY, "record", "-o", folder("t.db"), "--payload", "all", "--ring-size", "64K",
             "--threads", "4", "--", recordings.program("counted_calls"), folder("count"), str(CALLS), str(code)]
    environment = dict(os.environ, LD_PRELOAD=recordings.program("libfailing_calls.so"), ACLTAPE_FAIL=fail,
                       ACLTAPE_FAIL_COUNTS=folder("counts"), ACLTAPE_PAGER="", NO_COLOR="1")
    run = recordings.run(words, SECONDS, env=environment)
    numbers = recordings.counts_in(folder("counts")) or [0] * (1 + len(GROUPS))
    return run, numbers[0], dict(zip(GROUPS, numbers[1:])), sum(recordings.counts_in(folder("count")))


def what_is_wrong(run, code, expected_out, counted, held, files):
    """Empty when the run passes. `held`: what the trace holds, None: there is no trace."""
    if run.code is None:
        return f"still running after {SECONDS} s"
    if run.code < 0:
        return f"signal {-run.code}"
    if INSIDE.search(run.err):
        return f"the inside shows: {INSIDE.search(run.err).group().decode()}"
    said = [line for line in run.err.splitlines() if line.startswith(b"acltape: ") and not SUMMARY.match(line)]
    if run.out == b"" and counted == 0:
        return was_not_started(run, said, held, files)
    if run.out != expected_out:
        return f"the program printed {run.out!r}"
    if run.code != code and not (code == 0 and run.code == 4 and said):
        return f"exit code {run.code}, and the program's was {code}"
    left = [name for name in files if name not in ("t.db", "t.db-wal", "t.db-shm", "t.db-journal")]
    if left:
        return f"files are left: {left}"
    if held is None:
        return "" if said else "no trace, and no sentence"
    if held.damage:
        return f"the trace is damaged: {held.damage}"
    if held.calls > counted:
        return f"{held.calls} calls are in the trace, and {counted} were made"
    if held.calls < counted and held.state == "complete":
        return f"{held.calls} of {counted} calls, and the trace says that it is complete"
    if held.state != "complete" and not said:
        return f"the trace is '{held.state}', and there is no sentence"
    if len([line for line in said if not NOTES.match(line)]) > 1:
        return f"{len(said)} sentences"
    return ""


def was_not_started(run, said, held, files):
    if run.code not in (2, 3, 4):
        return f"exit code {run.code}, and the program was not started"
    if len(said) != 1:
        return f"{len(said)} sentences, and the program was not started"
    if held is not None or files:
        return f"files are left, and the program was not started: {files}"
    return ""


class Campaign:
    def __init__(self):
        self.lock = threading.Lock()
        self.runs = collections.Counter()
        self.findings = []
        self.slowest = 0.0
        self.progress = recordings.Progress()

    def fail_once(self, kind, number, follow):
        """One run; returns how many calls failed in it."""
        name = fail_name(kind, number, follow)
        code = code_of_program(number)
        with recordings.Folder(name) as folder:
            run, failed, _, counted = record(folder, name, code)
            files = sorted(set(os.listdir(folder.path)) - {"count", "counts"})
            held = recordings.held_by(folder("t.db")) if "t.db" in files else None
            wrong = what_is_wrong(run, code, f"{CALLS} calls in each of 2 threads\n".encode(), counted, held, files)
        with self.lock:
            self.runs[kind] += 1
            self.slowest = max(self.slowest, run.seconds)
            self.progress.at(name, sum(self.runs.values()), len(self.findings))
            if wrong:
                self.findings.append((name, wrong))
                shown = run.err.decode("utf-8", "replace").strip()[:400].replace("\n", "\n    ")
                print(f"FINDING {name}: {wrong}\n    {shown}\n"
                      f"  again: {sys.executable} -B {os.path.abspath(__file__)} --only {name}", flush=True)
        return failed

    def numbers(self):
        """How many calls of each kind a recording makes in which nothing fails."""
        with recordings.Folder("none") as folder:
            run, _, counts, counted = record(folder, "", 0)
            if run.code != 0 or counted != 2 * CALLS or recordings.held_by(folder("t.db")).calls != counted:
                raise SystemExit(f"a recording without failures does not work: {run}")
        return {kind: counts[GROUP_OF[kind]] for kind in KINDS}


def runs_of_all(campaign, kinds, numbers, first):
    """Every number, until no call of that number is made: some calls more than in the first run."""
    for kind in kinds:
        for number in range(first, numbers[kind] + numbers[kind] // 5 + 3):
            for follow in (False, True):
                yield kind, number, follow


def runs_of_sample(campaign, kinds, numbers, seed):
    """All kinds in turn. Early numbers come more often: there the calls differ, later they repeat."""
    rng = random.Random(seed)
    while True:
        for kind in kinds:
            number = max(1, int(numbers[kind] * rng.random() ** 2))
            yield kind, number, rng.random() < 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--all", action="store_true", help="every number instead of a sample")
    parser.add_argument("--first", type=int, default=1,
                        help="with --all, the number to begin with (to go on after an end)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="this kind alone")
    parser.add_argument("--only", help="this failure alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    campaign = Campaign()
    if options.only:
        kind, number, *follow = options.only.split(":")
        campaign.fail_once(kind, int(number), bool(follow))
        return 1 if campaign.findings else 0
    numbers = campaign.numbers()
    print("calls of a recording: " + ", ".join(f"{kind} {count}" for kind, count in numbers.items()), flush=True)
    kinds = options.kind or KINDS
    wanted = (runs_of_all(campaign, kinds, numbers, options.first) if options.all
              else runs_of_sample(campaign, kinds, numbers, options.seed))
    begin = time.monotonic()
    limit = 3600 * options.hours or (0 if options.all else options.seconds)
    failed = collections.Counter()

    def work():
        while not limit or time.monotonic() - begin < limit:
            with campaign.lock:
                chosen = next(wanted, None)
            if chosen is None:
                return
            if campaign.fail_once(*chosen) > 0:
                with campaign.lock:
                    failed[chosen[0]] += 1

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(work) for _ in range(options.jobs)]:
            future.result()
    runs = sum(campaign.runs.values())
    print(f"{runs} runs, {sum(failed.values())} with a failure ({', '.join(f'{k} {n}' for k, n in failed.items())}), "
          f"{len(campaign.findings)} findings in {time.monotonic() - begin:.0f} s; "
          f"slowest run {campaign.slowest:.1f} s")
    missing = [kind for kind in kinds if failed[kind] == 0]
    if missing:
        print(f"nothing failed of {', '.join(missing)}: nothing was tested there")
    return 1 if campaign.findings or missing else 0


if __name__ == "__main__":
    sys.exit(main())
