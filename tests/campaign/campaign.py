#!/usr/bin/env python3
"""Gives acltape damaged and hostile traces, and looks how its commands end.

A mutant is a copy of a trace with something changed (mutations.py). A run is one command on it. A run
passes when it ends by itself within 30 s, with a documented exit code, without a report of a sanitizer,
with one sentence where it refuses, and without control characters for the terminal. docs/trust.md says
what that promises.

  campaign.py --seconds 60                  one minute, from seed 1
  campaign.py --hours 3 --seed 77 --jobs 2
  campaign.py --mutant 4711                 this mutant alone, and what it does in every command
  campaign.py --mutant 4711 --command lint  ... in one

Mutants are numbered: one number always gives the same mutant and the same commands, on the same base
traces. --bases names a folder in which these are kept from one campaign to the next.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time

import bases
import mutations
import recordings

CODES = {0, 1, 2, 3, 4, 125}
REFUSALS = {2, 3, 4, 125}
SECONDS = 30  # the longest that a run may take
NEVER = re.compile(rb"AddressSanitizer|runtime error:|LeakSanitizer|terminate called|\[json\.exception|"
                   rb"unexpected failure|internal error|basic_string|vector::|std::|what\(\)|Assertion")
# Sentences that are no refusals and can stand before one.
NOTES = re.compile(rb"for which there is no kit|no steps were looked for|the steps are a guess|the journal is ")
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=8192:"
                    "soft_rss_limit_mb=2500:detect_odr_violation=0",
    "UBSAN_OPTIONS": "print_stacktrace=1", "OMP_NUM_THREADS": "1", "ACLTAPE_PAGER": "", "NO_COLOR": "1"}

# {trace}: the mutant. {other}: the trace that it was made of. {out}: a file that is not there.
# {plan}: a plan, changed in some of the mutants. {journal}: a journal of a bisection, the same.
COMMANDS = {
    "info": "info {trace}",
    "info.json": "info {trace} --format json",
    "query.calls": "query {trace} 'SELECT * FROM call' --limit 500",
    "query.arguments": "query {trace} 'SELECT * FROM argument' --limit 500",
    "query.flow": "query {trace} 'SELECT * FROM tensor_flow' --format csv --limit 500",
    "query.top_ops": "query {trace} --name top_ops",
    "query.top_lines": "query {trace} --name top_lines",
    "query.host_gaps": "query {trace} --name host_gaps",
    "query.capture_breaks": "query {trace} --name capture_breaks",
    "query.first_nan": "query {trace} --name first_nan",
    "query.steps": "query {trace} --name steps",
    "query.scopes": "query {trace} --name scopes --format json",
    "query.origin": "query {trace} 'SELECT * FROM device_call_origin' --limit 500",
    "query.location": "query {trace} 'SELECT * FROM call_location' --limit 500",
    "report": "report {trace} -o {out}",
    "report.plan": "report {trace} --plan {plan} -o {out}",
    "report.against": "report {other} --against {trace} -o {out}",
    "graph": "graph {trace}",
    "graph.dependencies": "graph {trace} 1- --dependencies",
    "steps": "steps {trace} --stable",
    "gears": "gears {trace}",
    "captures": "captures {trace}",
    "waits": "waits {trace}",
    "ranks": "ranks {trace}",
    "joint": "joint {trace}",
    "plan": "plan {trace} -o {out}",
    "emit.fx": "emit {trace} {plan} --as fx",
    "emit.dot": "emit {trace} {plan} --as dot",
    "emit.torchair": "emit {trace} {plan} --as torchair",
    "emit.json": "emit {trace} {plan} --as json",
    "lint": "lint {trace}",
    "lint.json": "lint {trace} 1- --format json",
    "lint.prove": "lint {trace} --prove",
    "replay": "replay {trace} --mode eager",
    "replay.captured": "replay {trace} --mode captured",
    "replay.plan": "replay {trace} --plan {plan}",
    "replay.synthesised": "replay {trace} --mode captured --data synthesised",
    "compare": "compare {trace} --repetitions 2 --warmup 1",
    "prove": "prove {trace} --plan {plan} --trials 1 --budget 5s",
    "prove.list": "prove {trace} --list",
    "merge": "merge {other} {trace} -o {out}",
    "trim": "trim {trace} --calls 5-12 -o {out}",
    "pack": "pack {trace} -o {out}",
    "redact": "redact {trace} -o {out}",
    "export.cpp": "export {trace} --to cpp --calls 5-12 -o {out}",
    "export.perfetto": "export {trace} --to perfetto -o {out}",
    "export.chrome": "export {trace} --to chrome -o {out}",
    "experiment": "experiment {trace}",
    "experiment.plan": "experiment {trace} --plan {plan}",
    "bisect": "bisect {trace} --budget 5s --journal {journal}",
    "bisect.journal": "bisect {trace} --plant {plant} --budget 5s --journal {journal}",
    "diff": "diff {other} {trace}",
    "diff.all": "diff {trace} {other} --all",
}


class Verdict:
    def __init__(self, name, command, wrong, done, seconds):
        self.name, self.command, self.wrong, self.done, self.seconds = name, command, wrong, done, seconds


def what_is_wrong(code, out, err, seconds):
    """Empty when the run passes."""
    if code is None:
        return f"still running after {seconds} s"
    if code < 0:
        return f"signal {-code}"
    if code not in CODES:
        return f"exit code {code}"
    forbidden = NEVER.search(err) or NEVER.search(out[:2000])
    if forbidden:
        return f"the inside shows: {forbidden.group().decode()}"
    said = [line for line in err.splitlines() if line.startswith(b"acltape: ") and not NOTES.search(line)]
    if code in REFUSALS and len(said) != 1:
        return f"{len(said)} sentences where it refuses"
    if code in REFUSALS and len(said[0]) > 2000:
        return "a sentence of more than 2,000 characters"
    if CONTROL.search(err):
        return "control characters on standard error"
    return ""


class Campaign:
    def __init__(self, binary, traces, keep, only):
        self.binary, self.traces, self.keep, self.only = binary, traces, keep, only
        self.lock = threading.Lock()
        self.runs, self.mutants = 0, 0
        self.codes = collections.Counter()
        self.findings = []
        self.slowest = 0.0

    def commands_of(self, rng, everything):
        if self.only:
            return [name for name in COMMANDS if name.startswith(self.only)]
        return list(COMMANDS) if everything else rng.sample(sorted(COMMANDS), 5)

    def make(self, seed, folder):
        """The mutant of a seed: its files, what was done, and the generator for what follows."""
        rng = random.Random(seed)
        base = rng.choice(self.traces)
        files = {"trace": os.path.join(folder, "mutant.db"), "other": os.path.join(folder, "other.db"),
                 "plan": os.path.join(folder, "plan.json"),
                 "journal": os.path.join(folder, "journal.jsonl"), "plant": base.plant}
        shutil.copyfile(base.trace, files["trace"])
        shutil.copyfile(base.trace, files["other"])
        with contextlib.closing(sqlite3.connect(files["other"])) as other, other:
            other.execute("UPDATE process SET pid = pid + 1")  # so that both can be merged
        shutil.copyfile(base.plan, files["plan"])
        if base.journal:
            shutil.copyfile(base.journal, files["journal"])
        done = [f"of {base.name}"]
        kind = rng.random()
        if kind < 0.12:
            done.append("its plan changed inside")
            self.change_file(files["plan"], rng)
        elif kind < 0.16 and base.journal:
            done.append("its journal changed inside")
            self.change_file(files["journal"], rng, lines=True)
        else:
            done += mutations.mutate(files["trace"], rng)
        return files, done, rng, kind

    @staticmethod
    def change_file(path, rng, lines=False):
        with open(path, "rb") as file:
            text = file.read()
        if lines:
            rows = text.splitlines()
            row = rng.randrange(len(rows))
            rows[row] = mutations.change_json(rows[row], rng)
            text = b"\n".join(rows) + b"\n"
        else:
            text = mutations.change_json(text, rng)
        with open(path, "wb") as file:
            file.write(text)

    def run_command(self, name, files, folder):
        pristine = os.path.join(folder, name)
        os.mkdir(pristine)
        places = dict(files, out=os.path.join(pristine, "out"))
        # Commands add results to a trace; each gets the mutant as it was made.
        for key in ("trace", "other", "journal"):
            places[key] = os.path.join(pristine, os.path.basename(files[key]))
            for suffix in ("", "-wal", "-journal"):
                if os.path.exists(files[key] + suffix):
                    shutil.copyfile(files[key] + suffix, places[key] + suffix)
        words = [word.format(**places) for word in re.findall(r"'[^']*'|\S+", COMMANDS[name])]
        words = [self.binary] + [word.strip("'") for word in words]
        run = recordings.run(words, SECONDS, env=dict(os.environ, **ENVIRONMENT), cwd=pristine)
        wrong = what_is_wrong(run.code, run.out, run.err, SECONDS)
        shutil.rmtree(pristine, ignore_errors=True)
        command = " ".join(words).replace(pristine, folder)
        return Verdict(name, command, wrong, run.err, run.seconds), run.code

    def run_mutant(self, seed, everything=False):
        folder = tempfile.mkdtemp(prefix=f"acltape_mutant_{seed}_")
        try:
            files, done, rng, kind = self.make(seed, folder)
            names = self.commands_of(rng, everything)
            if not everything and not self.only and kind < 0.16:
                using = "{plan}" if kind < 0.12 else "{journal}"
                names = [name for name in COMMANDS if using in COMMANDS[name] and name != "bisect"]
            for name in names:
                verdict, code = self.run_command(name, files, folder)
                with self.lock:
                    self.runs += 1
                    self.codes[code] += 1
                    self.slowest = max(self.slowest, verdict.seconds)
                if verdict.wrong:
                    self.report(seed, done, verdict)
                elif everything or self.only:
                    first = verdict.done.decode("utf-8", "replace").splitlines()[:1]
                    print(f"  {name}: code {code}, {verdict.seconds:.1f} s {first}")
            with self.lock:
                self.mutants += 1
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def report(self, seed, done, verdict):
        evidence = verdict.done.decode("utf-8", "replace")
        lines = [line for line in evidence.splitlines() if re.search(r"ERROR|runtime error|#\d+ |acltape: ", line)]
        shown = "\n".join("    " + line[:220] for line in (lines or evidence.splitlines())[:14])
        with self.lock:
            self.findings.append((seed, verdict.name, verdict.wrong))
            print(f"FINDING mutant {seed} ({'; '.join(done)})\n  {verdict.name}: {verdict.wrong}\n{shown}\n"
                  f"  again: {self.again(seed, verdict.name)}", flush=True)

    def again(self, seed, name):
        bases_folder = os.path.dirname(self.traces[0].trace)
        return (f"{sys.executable} {os.path.abspath(__file__)} --binary {self.binary} --bases {bases_folder} "
                f"--mutant {seed} --command {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--binary", default=os.environ.get("ACLTAPE_BINARY",
                                                           os.path.join(source, "build", "bin", "acltape")))
    parser.add_argument("--recorder", default=os.environ.get("ACLTAPE_CAMPAIGN_RECORDER"),
                        help="the acltape that records the base traces; a build with a sanitizer cannot "
                             "(default: --binary)")
    parser.add_argument("--bases",
                        help="folder of the base traces, made where they are missing (default: a temporary one)")
    parser.add_argument("--seed", type=int, default=1, help="number of the first mutant")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--mutants", type=int, default=0, help="end after so many mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutant", type=int, help="this one alone, in every command")
    parser.add_argument("--command", default="", help="only commands whose name begins so")
    parser.add_argument("--keep", help="write the mutant of --mutant to this folder and run nothing")
    options = parser.parse_args()
    if options.bases is None:
        options.bases = tempfile.mkdtemp(prefix="acltape_campaign_")
        made_here = True
    else:
        made_here = False
    try:
        traces = bases.make(os.path.abspath(options.bases), options.recorder or options.binary, options.binary)
        campaign = Campaign(os.path.abspath(options.binary), traces, options.keep, options.command)
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            files, done, _, _ = campaign.make(options.mutant, options.keep)
            print("; ".join(done))
            print("\n".join(files.values()))
            return 0
        if options.mutant is not None:
            campaign.run_mutant(options.mutant, everything=True)
            return 1 if campaign.findings else 0
        return run(campaign, options)
    finally:
        if made_here and not sys.exc_info()[0]:
            shutil.rmtree(options.bases, ignore_errors=True)


def run(campaign, options):
    print(f"seed {options.seed}, bases {', '.join(base.name for base in campaign.traces)}", flush=True)
    begin = time.monotonic()
    limit = options.seconds + 3600 * options.hours or (0 if options.mutants else 60)
    seeds = iter(range(options.seed, options.seed + (options.mutants or 10**9)))

    def work():
        while not limit or time.monotonic() - begin < limit:
            with campaign.lock:
                seed = next(seeds, None)
            if seed is None:
                return
            campaign.run_mutant(seed)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(work) for _ in range(options.jobs)]:
            future.result()
    seconds = time.monotonic() - begin
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(campaign.codes.items(), key=str))
    print(f"{campaign.mutants} mutants, {campaign.runs} runs, {len(campaign.findings)} findings in {seconds:.0f} s; "
          f"slowest run {campaign.slowest:.1f} s; exit codes {codes}")
    if campaign.runs == 0:
        print("no run: nothing was tested")
        return 1
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
