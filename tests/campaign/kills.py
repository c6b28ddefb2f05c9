#!/usr/bin/env python3
"""Kills the recorded program, its recorder, or both, at seeded moments, and holds the trace against the
program's own count of complete calls. Whatever is killed, no call that was complete is missing.

  program        every process of the program
  recorder       acltape; the program goes on and ends as it does alone
  both           the recorder, and the program at once
  program_first  the program, and the recorder at once
  apart          the recorder, and the program some time later
  group          the process group of the recorder, in which the program is too

The programs are two threads over the agent alone, three processes of them, a program of PyTorch and one
of the ACL interface.

  kills.py --kills 36                          each victim with each program, from seed 1
  kills.py --kills 60 --victim both --victim group
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

VICTIMS = ("program", "recorder", "both", "program_first", "apart", "group")
RING = 64 << 10
CODE = 7
SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36
TORCH = os.environ.get("ACLTAPE_COUNTING_PROGRAM", os.path.join(recordings.SOURCE, "build", "bin", "counting_program"))

# `words` of a count file and of the calls of each thread (0: until it is killed), `calls` of each thread
# where the program ends by itself, `says` what it prints then, `code` with which it ends.
Program = collections.namedtuple("Program", "path words options threads calls says code")
PROGRAMS = {
    "threads": Program(recordings.program("counted_calls"), lambda count, calls: [count, str(calls), str(CODE)],
                       ["--payload", "all"], 2, 60000, "60000 calls in each of 2 threads\n", CODE),
    "processes": Program(recordings.program("counted_calls"), lambda count, calls: [count, str(calls), str(CODE), "3"],
                         ["--payload", "all"], 6, 20000, "20000 calls in each of 2 threads\n", CODE),
    "torch": Program(TORCH, lambda count, calls: [count, str(calls or 1 << 60)],
                     ["--payload", "inputs", "--level", "aten"], 2, 20000, "done\n", 0),
    "device": Program(recordings.program("counted_device_calls"),
                      lambda count, calls: [count, str(calls), str(CODE)],
                      ["--payload", "inputs", "--level", "acl"], 2, 5000,
                      "5000 additions in each of 2 threads\n", CODE),
}


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def wait_until(is_so, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Kill:
    """One recording, and what the kill left of it."""

    def __init__(self, folder, victim, name, moments):
        self.folder, self.victim, self.program = folder, victim, PROGRAMS[name]
        # A recording of so many calls takes some tenths of a second.
        self.delay = moments.uniform(0, 0.05 if victim == "recorder" else 0.4)
        self.apart = moments.uniform(0, 0.05)
        self.trace = folder("t.db")
        self.name = f"{victim}, {name}, after {self.delay:.4f} s"

    def counted(self):
        return sum(recordings.counts_in(self.folder("count")))

    def record_and_kill(self):
        """Empty when everything ended as it should."""
        calls = self.program.calls if self.victim == "recorder" else 0
        words = [recordings.BINARY, "record", "--quiet", "-o", self.trace, *self.program.options, "--ring-size",
                 str(RING), "--threads", "8", "--", self.program.path,
                 *self.program.words(self.folder("count"), calls)]
        with open(self.folder("out"), "wb") as out, open(self.folder("err"), "wb") as err:
            self.recorder = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                             start_new_session=True)
        begun = wait_until(lambda: self.counted() > 0 and children_of(self.recorder.pid))
        children = children_of(self.recorder.pid)
        if not begun:
            self.recorder.kill()
            return "the program did not begin"
        if len(children) != 3:
            return f"the recorder has {len(children)} children, not the program, the keeper and the witness of signals"
        self.main, self.keeper = children[:2]
        time.sleep(self.delay)
        self.kill_victims()
        try:
            code = self.recorder.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill_program()
            self.recorder.kill()
            return "the recorder did not end"
        expected = 128 + signal.SIGKILL if self.victim == "program" else -signal.SIGKILL
        if code != expected:
            return f"the recorder ended with {code}"
        return self.wait_for_orphans() if self.victim != "program" else ""

    def kill_program(self):
        for pid in [*children_of(self.main), self.main]:
            kill(pid)

    def kill_victims(self):
        if self.victim == "group":
            os.killpg(self.recorder.pid, signal.SIGKILL)
        elif self.victim == "program_first":
            self.kill_program()
            self.recorder.kill()
        else:
            if self.victim != "program":
                self.recorder.kill()
            if self.victim == "apart":
                time.sleep(self.apart)
            if self.victim != "recorder":
                self.kill_program()

    def wait_for_orphans(self):
        """This process takes in the children of a recorder that was killed."""
        codes = {}

        def ended():
            try:
                while True:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                    if pid == 0:
                        return self.keeper in codes and self.main in codes
                    codes[pid] = os.waitstatus_to_exitcode(status)
            except ChildProcessError:
                return True
        # The command below waits for the keeper by itself.
        if not wait_until(lambda: ended() or self.main in codes):
            self.kill_program()
            wait_until(ended)
            return "the program did not end after its recorder was killed"
        self.all_ended = ended
        code = codes[self.main]
        if self.victim != "recorder":
            return "" if code == -signal.SIGKILL else f"the program ended with {code}"
        with open(self.folder("out")) as file:
            said = file.read()
        if code != self.program.code or said != self.program.says:
            return f"the program ended with {code} and printed {said!r}"
        made = self.program.threads * self.program.calls
        return "" if self.counted() == made else f"the program made {self.counted()} of {made} calls"

    def what_is_wrong(self):
        wrong = self.record_and_kill()
        if wrong:
            return wrong
        # The first command that opens the trace takes in what was received and what the rings held.
        opened = recordings.run([recordings.BINARY, "info", self.trace], SECONDS)
        if opened.code != 0:
            return f"info ended with {opened.code}: {opened.err.decode()[:300]}"
        if self.victim != "program" and not wait_until(self.all_ended):
            return "the keeper did not end"
        self.held = recordings.held_by(self.trace)
        counted = self.counted()
        if self.held.damage:
            return f"the trace is damaged: {self.held.damage}"
        if self.held.calls > counted + self.program.threads:  # a call is recorded before it is counted
            return f"{self.held.calls} calls are in the trace, and {counted} were complete"
        if self.missing() > 0:
            return f"{self.missing()} calls that were complete are missing"
        if self.held.losses:
            return f"the ledger tells of losses: {self.held.losses}"
        if self.victim != "program" and b"was killed" not in opened.out + opened.err:
            return f"nothing says that the recorder was killed: {opened.err.decode()[:300]}"
        left = sorted(set(os.listdir(self.folder.path)) - {"t.db", "count", "out", "err"})
        return f"files are left: {left}" if left else ""

    def missing(self):
        return max(0, self.counted() - self.held.calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--victim", action="append", choices=VICTIMS, help="may be given several times; default: each")
    parser.add_argument("--program", action="append", choices=tuple(PROGRAMS), help="the same")
    options = parser.parse_args()
    victims = options.victim or VICTIMS
    programs = [name for name in options.program or PROGRAMS if os.path.exists(PROGRAMS[name].path)]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    moments = random.Random(options.seed)
    sums = collections.defaultdict(collections.Counter)
    findings = 0
    begin = time.monotonic()
    number = 0
    while number < options.kills or time.monotonic() - begin < 3600 * options.hours:
        victim = victims[number % len(victims)]
        # Each program meets each victim.
        program = programs[(number + number // len(victims)) % len(programs)]
        with recordings.Folder(f"kill{number}") as folder:
            one = Kill(folder, victim, program, moments)
            wrong = one.what_is_wrong()
            if wrong:
                findings += 1
                print(f"FINDING kill {number} of seed {options.seed}, {one.name}: {wrong}", flush=True)
            else:
                sums[victim].update(kills=1, complete=one.counted(), kept=one.held.calls, missing=one.missing())
        number += 1
    for victim in victims:
        row = sums[victim]
        print(f"{victim}: {row['kills']} kills, {row['complete']} calls complete, {row['missing']} missing")
    print(f"{number} kills of {', '.join(programs)}: {findings} findings in {time.monotonic() - begin:.0f} s")
    return 1 if findings or not number else 0


if __name__ == "__main__":
    sys.exit(main())
