#!/usr/bin/env python3
"""Kills the recorded program, its recorder, or both, at seeded moments, and holds the trace against the
program's own count of complete calls.

  the program    every call that was complete is in the trace
  the recorder   the program goes on and ends as it does alone; the trace lacks what the rings held at most
  both           the trace lacks what the rings held at most

  kills.py --kills 30            ten of each, from seed 1
  kills.py --hours 1 --seed 77
"""
import argparse
import collections
import ctypes
import os
import random
import signal
import subprocess
import sys
import time

import recordings

VICTIMS = ("program", "recorder", "both")
RING = 64 << 10
THREADS = 2
SMALLEST_CALL = 64  # bytes of a call in a ring, at least
IN_RINGS = THREADS * RING // SMALLEST_CALL
CALLS = 60000  # of each thread, where the program ends by itself
CODE = 7
SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def wait_until(is_so, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


class Kill:
    """One recording, and what the kill left of it."""

    def __init__(self, folder, victim, delay):
        self.folder, self.victim, self.delay = folder, victim, delay
        self.trace = folder("t.db")
        self.before = 0  # calls that were complete just before the kill

    def counted(self):
        return sum(recordings.counts_in(self.folder("count")))

    def record_and_kill(self):
        """Empty when everything ended as it should."""
        calls = CALLS if self.victim == "recorder" else 0
        words = [recordings.BINARY, "record", "--quiet", "-o", self.trace, "--payload", "all", "--ring-size", str(RING),
                 "--threads", "4", "--", recordings.program("counted_calls"), self.folder("count"),
                 str(calls), str(CODE)]
        with open(self.folder("out"), "wb") as out, open(self.folder("err"), "wb") as err:
            recorder = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        if not wait_until(lambda: self.counted() > 0):
            recorder.kill()
            return "the program did not begin"
        program = children_of(recorder.pid)[0]
        time.sleep(self.delay)
        self.before = self.counted()
        if self.victim in ("recorder", "both"):
            recorder.kill()
        if self.victim in ("program", "both"):
            os.kill(program, signal.SIGKILL)
        try:
            code = recorder.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.kill(program, signal.SIGKILL)
            recorder.kill()
            return "the recorder did not end"
        expected = 128 + signal.SIGKILL if self.victim == "program" else -signal.SIGKILL
        if code != expected:
            return f"the recorder ended with {code}"
        return self.wait_for_orphan(program) if self.victim != "program" else ""

    def wait_for_orphan(self, program):
        """This process takes in the children of a recorder that was killed."""
        status = []

        def ended():
            pid, what = os.waitpid(program, os.WNOHANG)
            status.append(what)
            return pid != 0
        if not wait_until(ended):
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)
            return "the program did not end after its recorder was killed"
        code = os.waitstatus_to_exitcode(status[-1])
        if self.victim == "both":
            return "" if code == -signal.SIGKILL else f"the program ended with {code}"
        with open(self.folder("out")) as file:
            said = file.read()
        if code != CODE or said != f"{CALLS} calls in each of {THREADS} threads\n":
            return f"the program ended with {code} and printed {said!r}"
        return "" if self.counted() == THREADS * CALLS else f"the program made {self.counted()} calls"

    def what_is_wrong(self):
        wrong = self.record_and_kill()
        if wrong:
            return wrong
        # The first command that opens the trace takes in what the recorder had received.
        opened = recordings.run([recordings.BINARY, "info", self.trace], SECONDS)
        if opened.code != 0:
            return f"info ended with {opened.code}: {opened.err.decode()[:300]}"
        self.held = recordings.held_by(self.trace)
        counted = self.counted()
        if self.held.damage:
            return f"the trace is damaged: {self.held.damage}"
        if self.held.calls > counted + THREADS:  # a call is recorded before it is counted
            return f"{self.held.calls} calls are in the trace, and {counted} were complete"
        if self.missing() > (0 if self.victim == "program" else IN_RINGS):
            return f"{self.missing()} calls that were complete are missing"
        if self.victim != "program" and "recorder_killed" not in self.held.losses:
            return f"the ledger does not say that the recorder was killed: {self.held.losses}"
        left = sorted(set(os.listdir(self.folder.path)) - {"t.db", "count", "out", "err"})
        return f"files are left: {left}" if left else ""

    def missing(self):
        complete = self.counted() if self.victim != "recorder" else self.before
        return max(0, complete - self.held.calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--hours", type=float, default=0)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    rng = random.Random(options.seed)
    sums = collections.defaultdict(collections.Counter)
    findings = 0
    begin = time.monotonic()
    number = 0
    while number < options.kills or time.monotonic() - begin < 3600 * options.hours:
        victim = VICTIMS[number % len(VICTIMS)]
        # A recording of so many calls takes some tenths of a second.
        delay = rng.uniform(0, 0.05 if victim == "recorder" else 0.4)
        with recordings.Folder(f"kill{number}") as folder:
            kill = Kill(folder, victim, delay)
            wrong = kill.what_is_wrong()
            if wrong:
                findings += 1
                print(f"FINDING kill {number} of seed {options.seed}, {victim} after {delay:.4f} s: {wrong}",
                      flush=True)
            else:
                sums[victim].update(kills=1, complete=kill.before if victim == "recorder" else kill.counted(),
                                    kept=kill.held.calls, missing=kill.missing())
                sums[victim]["most"] = max(sums[victim]["most"], kill.missing())
        number += 1
    for victim in VICTIMS:
        row = sums[victim]
        print(f"{victim}: {row['kills']} kills, {row['complete']} calls complete, {row['missing']} missing "
              f"(at most {row['most']} in one)")
    print(f"{number} kills, {findings} findings in {time.monotonic() - begin:.0f} s")
    return 1 if findings or not number else 0


if __name__ == "__main__":
    sys.exit(main())
