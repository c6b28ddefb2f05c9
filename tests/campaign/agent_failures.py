#!/usr/bin/env python3
"""Lets calls fail that the recorder's agent makes inside the recorded program, one after the other.

The n-th call of a kind fails, once alone and once with all that follow (failing_agent_calls.cpp says whose a
call is). Three programs are recorded: one over the agent alone, one over the ACL interface, one of PyTorch. A run
passes when

  - the program prints and returns what it does alone, without a signal, within 30 s;
  - the trace opens and holds what it holds when nothing fails: calls by operator, arguments, memory, values,
    ranges, lines of source, streams, events, graphs; or a row of its ledger and a sentence of acltape say what is
    missing;
  - where calls, arguments or values are missing, the trace is not called complete.

  agent_failures.py --seconds 50               a sample of all numbers, from seed 1
  agent_failures.py --all                      every number of every kind; hours for the program of PyTorch
  agent_failures.py --program device --kind memory --all
  agent_failures.py --only device:memory:417:on   this failure alone
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import sqlite3
import sys
import threading
import time

import recordings

KINDS = ("memory", "map", "open", "read", "write", "start")  # as in failing_agent_calls.cpp
SECONDS = 30  # limit of a run; more where the machine is so busy that a run without failures takes a quarter of it
MOST_SECONDS = 120
PYTHON = os.environ.get("ACLTAPE_PYTHON", "/usr/bin/python3")
HERE = os.path.dirname(os.path.abspath(__file__))

Program = collections.namedtuple("Program", "words options")
PROGRAMS = {
    "calls": Program(lambda folder, code: [recordings.program("counted_calls"), folder("count"), "40", str(code)],
                     ["--payload", "all", "--ring-size", "1M"]),
    "device": Program(lambda folder, code: [recordings.program("device_calls"), str(code)],
                      # All rings are mapped at once.
                      ["--payload", "all", "--level", "acl", "--device-times", "--ring-size", "256K"]),
    "torch": Program(lambda folder, code: [PYTHON, os.path.join(HERE, "torch_calls.py"), str(code)],
                     ["--payload", "all", "--level", "aten", "--modules"]),
}

# Queries that count the contents of a trace, by name. If there are fewer than without failures, the trace has to say
# so.
FACTS = {
    "leaves": "SELECT count(*) FROM call WHERE leaf",
    "enclosing calls": "SELECT count(*) FROM call WHERE NOT leaf",
    "operators": "SELECT count(DISTINCT op_id) FROM call",
    "arguments": "SELECT count(*) FROM call JOIN signature_argument USING (signature_id) WHERE leaf",
    "buffers of arguments": "SELECT count(*) FROM call, json_each(call.buffers) WHERE leaf AND json_each.value > 0",
    "lines": "SELECT count(stack_id) FROM call WHERE leaf AND stack_id > 0",
    "blocks": "SELECT count(*) FROM buffer",
    "values": "SELECT count(*) FROM snapshot",
    "ranges": "SELECT count(*) FROM scope_range",
    "streams": "SELECT count(*) FROM stream",
    "events": "SELECT count(*) FROM event",
    "graphs": "SELECT count(*) FROM model",
    "calls in graphs": "SELECT count(*) FROM call WHERE model_id > 0",
    "times of the device": "SELECT count(*) FROM device_span",
}
# Without these a trace is still complete.
MAY_BE_COMPLETE = {"lines", "times of the device"}

Trace = collections.namedtuple("Trace", "state facts rows damage")


def read(path):
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True)
    try:
        damage = connection.execute("PRAGMA integrity_check").fetchone()[0]
        state = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
        facts = {name: connection.execute(query).fetchone()[0] for name, query in FACTS.items()}
        rows = set(connection.execute("SELECT kind, subject, cause FROM ledger WHERE severity <> 'info'"))
        return Trace(state[0] if state else "none", facts, rows, "" if damage == "ok" else damage)
    except sqlite3.Error as error:
        return Trace("none", {}, set(), str(error))
    finally:
        connection.close()


def code_of_program(number):
    """Programs that succeed and programs that fail take turns: acltape's own code must not hide theirs."""
    return 7 if number % 2 else 0


def environment():
    return dict(os.environ, ACLTAPE_PAGER="", NO_COLOR="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")


def record(name, folder, fail, code, seconds):
    """Records a program; returns the run, how many calls failed, and how many of each kind were made."""
    program = PROGRAMS[name]
    words = [recordings.BINARY, "record", "-o", folder("t.db"), "--keep-empty", *program.options, "--",
             *program.words(folder, code)]
    run = recordings.run(words, seconds, env=dict(environment(),
                         LD_PRELOAD=recordings.program("libfailing_agent_calls.so"),
                                                  ACLTAPE_FAIL=fail, ACLTAPE_FAIL_COUNTS=folder("counts")))
    numbers = recordings.counts_in(folder("counts")) or [0] * (1 + len(KINDS))
    return run, numbers[0], dict(zip(KINDS, numbers[1:]))


class Expected:
    """Returns the result of a program alone, and the contents of a recording of it in which nothing fails."""

    def __init__(self, name):
        with recordings.Folder(f"{name}_alone") as folder:
            alone = recordings.run(PROGRAMS[name].words(folder, 7), MOST_SECONDS, env=environment())
        if alone.code != 7 or alone.err:
            raise SystemExit(f"{name}: the program does not work by itself: {alone}")
        self.out = alone.out
        self.calls, self.facts, self.rows, self.seconds = {}, {}, set(), SECONDS
        for number in range(3):  # in some recordings there is more than in others
            with recordings.Folder(f"{name}_whole_{number}") as folder:
                run, _, calls = record(name, folder, "", 0, MOST_SECONDS)
                trace = read(folder("t.db"))
            if run.code != 0 or run.out != self.out or trace.state != "complete":
                raise SystemExit(f"{name}: a recording without failures does not work: {run} {trace}")
            self.calls = {kind: max(count, self.calls.get(kind, 0)) for kind, count in calls.items()}
            self.facts = {fact: min(count, self.facts.get(fact, count)) for fact, count in trace.facts.items()}
            self.rows |= trace.rows
            self.seconds = max(self.seconds, 4 * run.seconds)


def what_is_wrong(run, code, expected, trace):
    """Empty when the run passes. `trace`: None when there is none."""
    if run.code is None:
        return f"still running after {expected.seconds:.0f} s"
    if run.code < 0:
        return f"signal {-run.code}"
    if run.out != expected.out:
        return f"the program printed {run.out!r}"
    if run.code != code:
        return f"exit code {run.code}, and the program's was {code}"
    lines = run.err.splitlines()
    foreign = [line for line in lines if line.strip() and not line.startswith((b"acltape: ", b"next: ", b"  "))]
    if foreign:
        return f"another line: {foreign[0]!r}"
    if trace is None:
        return "no trace"
    if trace.damage:
        return f"the trace is damaged: {trace.damage}"
    told = {kind for kind, subject, cause in trace.rows - expected.rows}
    missing = [fact for fact, count in expected.facts.items() if trace.facts[fact] < count]
    if not missing:
        return ""
    if not told:
        return f"fewer {', '.join(missing)}, and the ledger does not say so"
    if (trace.state == "complete" and set(missing) - MAY_BE_COMPLETE
            and trace.facts["leaves"] + trace.facts["enclosing calls"] > 0):
        return f"fewer {', '.join(missing)}, and the trace says that it is complete ({told})"
    if not any(kind.encode() in run.err for kind in told):
        return f"no sentence tells of {sorted(told)}"
    return ""


class Campaign:
    def __init__(self, programs):
        self.lock = threading.Lock()
        self.expected = {name: Expected(name) for name in programs}
        self.runs = collections.Counter()
        self.failed = collections.Counter()
        self.findings = []
        self.slowest = 0.0
        self.progress = recordings.Progress()

    def fail_once(self, name, kind, number, follow):
        fail = f"{kind}:{number}" + (":on" if follow else "")
        code = code_of_program(number)
        with recordings.Folder(f"{name}_{kind}_{number}") as folder:
            run, failed, _ = record(name, folder, fail, code, self.expected[name].seconds)
            trace = read(folder("t.db")) if os.path.exists(folder("t.db")) else None
            wrong = what_is_wrong(run, code, self.expected[name], trace)
        with self.lock:
            self.runs[name] += 1
            self.failed[name, kind] += 1 if failed else 0
            self.slowest = max(self.slowest, run.seconds)
            self.progress.at(f"{name}:{fail}", sum(self.runs.values()), len(self.findings))
            if wrong:
                self.findings.append((name, fail, wrong))
                shown = run.err.decode("utf-8", "replace").strip()[:600].replace("\n", "\n    ")
                print(f"FINDING {name}:{fail}: {wrong}\n    {shown}\n"
                      f"  again: {sys.executable} -B {os.path.abspath(__file__)} --only {name}:{fail}", flush=True)


def runs_of_all(expected, kinds, first):
    for (name, whole), kind in itertools.product(expected.items(), kinds):
        for number in range(first, whole.calls[kind] + whole.calls[kind] // 20 + 2):
            for follow in (False, True):
                yield name, kind, number, follow


def runs_of_sample(expected, kinds, seed):
    """All programs and kinds in turn. Early numbers come more often: there the calls differ, later they repeat."""
    rng = random.Random(seed)
    made = {(name, kind): whole.calls[kind] for name, whole in expected.items() for kind in kinds if whole.calls[kind]}
    chosen = set()
    while len(chosen) < 2 * sum(made.values()):
        for (name, kind), count in made.items():
            run = name, kind, 1 + int(count * rng.random() ** 2), rng.random() < 0.5
            if run not in chosen:
                chosen.add(run)
                yield run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--all", action="store_true", help="every number instead of a sample")
    parser.add_argument("--first", type=int, default=1,
                        help="with --all, the number to begin with (to go on after an end)")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="this program alone")
    parser.add_argument("--kind", action="append", choices=KINDS, help="this kind alone")
    parser.add_argument("--only", help="this failure alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.only:
        name, kind, number, *follow = options.only.split(":")
        campaign = Campaign([name])
        campaign.fail_once(name, kind, int(number), bool(follow))
        return 1 if campaign.findings else 0
    campaign = Campaign(options.program or list(PROGRAMS))
    for name, whole in campaign.expected.items():
        calls = ", ".join(f"{kind} {count}" for kind, count in whole.calls.items())
        print(f"{name}: the agent's calls: {calls}", flush=True)
    kinds = options.kind or KINDS
    wanted = (runs_of_all(campaign.expected, kinds, options.first) if options.all
              else runs_of_sample(campaign.expected, kinds, options.seed))
    begin = time.monotonic()
    limit = 3600 * options.hours or (0 if options.all else options.seconds)

    def work():
        while not limit or time.monotonic() - begin < limit:
            with campaign.lock:
                chosen = next(wanted, None)
            if chosen is None:
                return
            campaign.fail_once(*chosen)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(work) for _ in range(options.jobs)]:
            future.result()
    failed = sum(campaign.failed.values())
    print(f"{sum(campaign.runs.values())} runs, {failed} with a failure "
          f"({', '.join(f'{name} {kind} {count}' for (name, kind), count in campaign.failed.items() if count)}), "
          f"{len(campaign.findings)} findings in {time.monotonic() - begin:.0f} s; "
          f"slowest run {campaign.slowest:.1f} s")
    if failed == 0:
        print("nothing failed: nothing was tested")
    return 1 if campaign.findings or failed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
