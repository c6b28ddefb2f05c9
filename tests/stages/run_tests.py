#!/usr/bin/env python3
"""Runs the tests of one stage by ctest and prints which took longest.

    run_tests.py STAGE --build FOLDER [--share K|all] [--list]

The tests get a list of their own for ctest, in FOLDER/stages/STAGE, in which each is started by launch.py. So
what each one cost is known: it is written to times.tsv there. A share (of a stage that has some) is chosen by
the commit, unless one is given; "all" takes the whole stage.

Tests named in lower case ("cli.Planned") start whole programs, which another test beside them can slow by
seconds. When only such tests fail they run once more, alone, and one that passes then is named as unsteady.
What fails ends the output with its evidence.
"""
import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import table

SLOWEST = 10
EVIDENCE = re.compile(r"^(FAIL|ERROR): |Error: |Failure$|^\[  FAILED|^\$ |Sanitizer")
LAST_LINES = 25
COSTS_OF_KINDS = {"compiled": 1.0, "script": 20.0}  # costs of tests whose cost is not known
LAUNCHER = os.path.join(table.FOLDER, "launch.py")


def quoted(text):
    """A word as a bracket argument of CMake, which takes every character as it is."""
    marks = "="
    while f"]{marks}]" in text or text.endswith(f"]{marks}"):
        marks += "="
    return f"[{marks}[{text}]{marks}]"


def as_text(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return ";".join(str(part) for part in value) if isinstance(value, list) else str(value)


def properties_of(test, known):
    """The test's properties; one without a cost gets the known one, because ctest starts the dearest first."""
    properties = {name: as_text(value) for name, value in test.properties.items()}
    properties.setdefault("COST", str(known.get(test.name, COSTS_OF_KINDS[test.kind])))
    return properties


def write_list(folder, tests, known):
    """Makes a folder in which ctest finds these tests alone; the file to which they write what they took."""
    os.makedirs(folder, exist_ok=True)
    times = os.path.join(folder, "times.tsv")
    with open(times, "w", encoding="utf-8"):
        pass
    with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
        for test in tests:
            command = (sys.executable, "-ISB", LAUNCHER, times, test.name, *test.command)
            file.write(f"add_test({quoted(test.name)} {' '.join(quoted(word) for word in command)})\n")
            rows = " ".join(f"{name} {quoted(value)}" for name, value in properties_of(test, known).items())
            file.write(f"set_tests_properties({quoted(test.name)} PROPERTIES {rows})\n")
    return times


def report_of(folder):
    return os.path.join(folder, "report.xml")


def list_of_failures(folder):
    return os.path.join(folder, "Testing", "Temporary", "LastTestsFailed.log")


def forget_failures(folder):
    """A run that fails before its tests must not show the evidence of the run before."""
    if os.path.exists(list_of_failures(folder)):
        os.remove(list_of_failures(folder))


def failed_tests(folder):
    path = list_of_failures(folder)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.strip().split(":", 1)[1] for line in file if ":" in line]


def cases(folder):
    """Returns what ctest's report says of each test."""
    report = report_of(folder)
    return list(xml.etree.ElementTree.parse(report).getroot().iter("testcase")) if os.path.exists(report) else []


def skipped_tests(folder):
    return sorted(case.get("name") for case in cases(folder) if case.find("skipped") is not None and
                  case.get("status") == "notrun")


def show_evidence(folder):
    log = os.path.join(folder, "Testing", "Temporary", "LastTest.log")
    if not failed_tests(folder):
        return
    print(f"\n== evidence of what failed (all of it: {os.path.relpath(log, table.ROOT)})")
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n")[:400] for line in file if EVIDENCE.search(line)]
    print("\n".join(lines[-LAST_LINES:]), flush=True)


def read_times(path):
    """Seconds, processor seconds and exit code by test; of a test that ran twice the second time."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return {name: (float(wall), float(processor), int(code)) for name, wall, processor, code in rows}


def all_times(folder, times):
    """These times, and of tests that ctest ended the seconds alone: their launcher wrote nothing."""
    ended = {case.get("name"): (float(case.get("time")), 0.0, -9) for case in cases(folder)}
    return {**ended, **times}


def show_slowest(stage, times):
    used = sum(processor for _, processor, _ in times.values())
    print(f"\n   {stage.name}: {len(times)} tests took {used:.0f} s of processor time; the slowest, with theirs:")
    for name, (wall, processor, _) in sorted(times.items(), key=lambda row: -row[1][0])[:SLOWEST]:
        print(f"   {wall:8.1f} s {processor:8.1f} s  {name}")
    sys.stdout.flush()


def ctest(folder, *options):
    command = ["ctest", "--test-dir", folder, "--output-on-failure", *options]
    return subprocess.run(command, check=False).returncode


def run(folder, jobs):
    """Runs the tests of a folder; the exit code."""
    code = ctest(folder, "-j", str(jobs), "--output-junit", report_of(folder))
    skipped = skipped_tests(folder)
    if skipped:
        print(f"\n   skipped, because something they need is not here: {' '.join(skipped)}")
    if code == 0:
        return 0
    failed = failed_tests(folder)
    if failed and all(re.match(r"[a-z_]+\.", name) for name in failed):
        print(f"\n== once more, alone: {' '.join(failed)}", flush=True)
        if ctest(folder, "--rerun-failed") == 0:
            print(f"\n== UNSTEADY, failed beside other tests and passed alone: {' '.join(failed)}", flush=True)
            return 0
    show_evidence(folder)
    return code


def share_of(stage, wanted):
    """The share to run, from 1; None: all of the stage. A number counts on from the first share after the last."""
    if stage.shares == 1 or wanted == "all":
        return None
    return (int(wanted) - 1 if wanted else table.commit_number()) % stage.shares + 1


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage")
    parser.add_argument("--build", required=True)
    parser.add_argument("--share", default=os.environ.get("ACLTAPE_SHARE", ""))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the names of the tests and run none")
    options = parser.parse_args(arguments)
    stages, known = table.read(), table.costs()
    stage = stages[options.stage]
    tests = table.list_tests(options.build)
    chosen = table.tests_of(stage, stages, tests)
    share = share_of(stage, options.share)
    if share:
        chosen = table.in_shares(stage, chosen, known)[share - 1]
    chosen = table.with_fixtures(chosen, tests)
    if options.list:
        print("\n".join(sorted(test.name for test in chosen)))
        return 0
    if not chosen:
        print(f"{stage.name}: {options.build} has no test of this stage", file=sys.stderr)
        return 1
    if share:
        print(f"   share {share} of {stage.shares}, by the commit; all of it: "
              f"scripts/test --stage {stage.name} --share all", flush=True)
    folder = os.path.join(os.path.abspath(options.build), "stages", stage.name)
    times = write_list(folder, chosen, known)
    code = run(folder, options.jobs)
    show_slowest(stage, all_times(folder, read_times(times)))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
