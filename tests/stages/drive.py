#!/usr/bin/env python3
"""Runs stages one after the other (steps.sh) and ends with what each took, warnings, and what was left out.

    drive.py [--stage NAME.. | --ci | --all] [--share K|all] [--keep] [--check]

scripts/test calls it after it has set up the environment. A stage that fails does not stop the others, unless
it is the first: what comes after builds on the same tree. The exit code is 1 when one failed.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time

import table
import run_tests

BUILD = os.environ.get("ACLTAPE_BUILD", os.path.join(table.ROOT, "build"))
STATE = os.path.join(BUILD, "stages")
STEPS = os.path.join(table.FOLDER, "steps.sh")
KEPT = os.path.join(table.ROOT, "bench", "test_times.tsv")
KEPT_COLUMNS = ("date", "commit", "stage", "seconds", "of that build", "processor seconds", "budget", "of budget",
                "cores", "load")
# Seconds that a whole run may take on two idle cores: with a compiler cache, and without.
LIMITS = {"test": (480, 1200), "ci": (2100, 5400)}
CACHED = 0.9  # the share of a run's compilations that the cache must serve for the first limit to count
LINKS = 60  # builds that asked no cache and took more seconds compiled without one
CORES = 2  # the budgets are of so many


def compilations():
    """How many the compiler cache was asked for so far, and how many of them it had."""
    if not shutil.which("ccache"):
        return 0, 0
    done = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=False)
    counts = dict(line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 1)
    hits = int(counts.get("direct_cache_hit", 0)) + int(counts.get("preprocessed_cache_hit", 0))
    return hits + int(counts.get("cache_miss", 0)), hits


def run_stage(stage, environment):
    """Runs a stage; its row for the report."""
    build_seconds = os.path.join(STATE, "build_seconds")
    os.makedirs(STATE, exist_ok=True)
    with open(build_seconds, "w", encoding="utf-8"):
        pass
    run_tests.forget_failures(os.path.join(STATE, stage.name))
    load, start = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen(["bash", STEPS, stage.name], env=environment, cwd=table.ROOT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(build_seconds, encoding="utf-8") as file:
        built = sum(int(line) for line in file)
    row = {"stage": stage.name, "code": process.returncode, "seconds": time.monotonic() - start, "built": built,
           "processor": used.ru_utime + used.ru_stime, "budget": stage.budget, "load": load}
    print(f"\n== {stage.name}: {said(row)}", flush=True)
    return row


def said(row):
    took = row["seconds"]
    return (f"{'passed' if row['code'] == 0 else 'FAILED'} in {took:.0f} s, {row['built']} s of them builds; "
            f"budget without builds {row['budget']} s; {row['processor']:.0f} s of processor time")


def warnings_of(run, rows, compiled, hits):
    """Returns warnings about stages that took longer than they may."""
    cores = os.cpu_count()
    found = []
    for row in rows:
        took = row["seconds"] - row["built"]
        if took > row["budget"]:
            found.append(f"{row['stage']} took {took:.0f} s without its builds; its budget is {row['budget']} s on "
                         f"{CORES} idle cores ({cores} here, load {row['load']:.1f} when it began)")
    if run in LIMITS:
        cached = hits >= CACHED * compiled if compiled else sum(row["built"] for row in rows) <= LINKS
        limit, took = LIMITS[run][0 if cached else 1], sum(row["seconds"] for row in rows)
        if took > limit:
            found.append(f"the run took {took / 60:.1f} min; {limit / 60:.0f} min are the limit "
                         f"{'with' if cached else 'without'} a compiler cache")
    return found


def left_out(stages, rows, share):
    """Lines that name what did not run, with the command that runs it."""
    ran = {row["stage"] for row in rows}
    for stage in stages.values():
        if stage.name not in ran:
            yield f"{stage.does}: scripts/test --stage {stage.name}"
        elif run_tests.share_of(stage, share):
            yield (f"{stage.shares - 1} of {stage.shares} shares of {stage.name}: "
                   f"scripts/test --stage {stage.name} --share all")


def keep(rows):
    """Adds the rows to bench/test_times.tsv."""
    commit = subprocess.run(["git", "-C", table.ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    new = not os.path.exists(KEPT)
    with open(KEPT, "a", encoding="utf-8") as file:
        if new:
            file.write("\t".join(KEPT_COLUMNS) + "\n")
        for row in rows:
            took = row["seconds"] - row["built"]
            cells = (datetime.date.today().isoformat(), commit, row["stage"], f"{row['seconds']:.0f}", row["built"],
                     f"{row['processor']:.0f}", row["budget"], f"{took / row['budget']:.2f}", os.cpu_count(),
                     f"{row['load']:.1f}")
            file.write("\t".join(str(cell) for cell in cells) + "\n")


def keep_costs(stages, rows):
    """Writes the processor time of each test that passed into costs.tsv, beside those that did not run."""
    names = {test.name for test in table.list_tests(BUILD)}
    known = {name: seconds for name, seconds in table.costs().items() if name in names}
    for row in rows:
        times = os.path.join(STATE, row["stage"], "times.tsv")
        if stages[row["stage"]].of_release and os.path.exists(times):
            known.update({name: used for name, (_, used, code) in run_tests.read_times(times).items() if code == 0})
    table.write_costs(known)


def report(run, stages, rows, compiled, hits, share):
    print("\n== summary")
    for row in rows:
        print(f"   {row['stage']:16} {said(row)}")
    total = sum(row["seconds"] for row in rows)
    print(f"   {total / 60:.1f} min on {os.cpu_count()} cores; of {compiled} compilations the cache had {hits}")
    omitted = list(left_out(stages, rows, share))
    if omitted:
        print("\n== left out")
        print("\n".join(f"   {line}" for line in omitted))
    for warning in warnings_of(run, rows, compiled, hits):
        print(f"\nWARNING: {warning}")
    failed = [row["stage"] for row in rows if row["code"] != 0]
    for name in failed:
        print(f"\nFAILED: {name}; again: scripts/test --stage {name}" + (f" --share {share}" if share else ""))
        run_tests.show_evidence(os.path.join(STATE, name))
    sys.stdout.flush()
    return 1 if failed else 0


def chosen_run(options):
    return "ci" if options.ci else "all" if options.all else "" if options.stage else "test"


def parse(arguments, stages):
    parser = argparse.ArgumentParser(prog="scripts/test", usage="scripts/test [--stage NAME.. | --ci | --all] "
                                     "[--share K|all] [--keep]", add_help=False)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--stage", nargs="+", choices=[*stages, "list"])
    what.add_argument("--ci", action="store_true")
    what.add_argument("--all", action="store_true")
    parser.add_argument("--share", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.share not in ("", "all") and not re.fullmatch("[1-9][0-9]*", options.share):
        parser.error("--share takes a number from 1 on, or all")
    return options


def show_list(stages):
    for stage in stages.values():
        runs = ", ".join({"test": "scripts/test", "ci": ".ci/run"}[run] for run in stage.runs) or "scripts/test --all"
        shares = f"; one of {stage.shares} shares by the commit" if stage.shares > 1 else ""
        print(f"{stage.name:16} {stage.does}\n{'':16} in {runs}; budget {stage.budget} s{shares}")


def main(arguments):
    stages = table.read()
    options = parse(arguments, stages)
    if options.check:
        if options.stage and "list" in options.stage:
            show_list(stages)
        return 0
    run = chosen_run(options)
    share = options.share or ("all" if run == "all" else "")
    wanted = [stages[name] for name in options.stage] if options.stage else table.of_run(stages, run)
    environment = {**os.environ, "ACLTAPE_SHARE": share}
    compiled_before, hits_before = compilations()
    rows = []
    for stage in wanted:
        rows.append(run_stage(stage, environment))
        if rows[-1]["code"] != 0 and stage.name == "core":
            break
    compiled, hits = compilations()
    with open(os.path.join(STATE, "summary.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    if options.keep:
        keep(rows)
        keep_costs(stages, rows)
    return report(run, stages, rows, compiled - compiled_before, hits - hits_before, share)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
