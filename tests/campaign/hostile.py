#!/usr/bin/env python3
"""Records programs that do what a recorder must bear, and holds each against its unrecorded run.

Each row of the table is a program with its surroundings. It runs alone and recorded. What it prints and
returns must be the same, and so must its own count of calls. Every call is in the trace; where a row says
"told", calls may be missing, and the ledger and a sentence say so, or acltape refuses with a sentence before
the program starts.

  hostile.py                       every row
  hostile.py threads sandbox       rows whose names begin so
"""
import collections
import ctypes.util
import os
import subprocess
import sys
import time

import recordings

SECONDS = 60
HOSTILE, COUNT, FOLDER = "{hostile}", "{count}", "{folder}"

# inside: stands before the program. outside: stands before acltape, or before the program where it runs alone.
Row = collections.namedtuple("Row", "name words inside outside options told needs",
                             defaults=((), (), ("--quiet", "--ring-size", "64K"), False, ""))


def hostile(*words):
    return (HOSTILE, COUNT, *words)


def shell(text):
    """Words before a command: the shell does `text` and becomes the command."""
    return ("sh", "-c", f'{text} exec "$@"', "sh")


def without(*redirections):
    return ("sh", "-c", f'exec "$@" {" ".join(redirections)}', "sh")


def compiler_library(name):
    done = subprocess.run([os.environ.get("ACLTAPE_CC", "gcc"), f"-print-file-name={name}"],
                          capture_output=True, text=True)
    path = done.stdout.strip()
    return path if os.path.isabs(path) else ""


NOT_HERE = "not here"
ASAN = compiler_library("libasan.so") or NOT_HERE
JEMALLOC = ctypes.util.find_library("jemalloc") or NOT_HERE
SMALL_SHM = shell("mount -t tmpfs -o size=4k,ro none /dev/shm;")
ROWS = (
    Row("calls", hostile("calls")),
    Row("inheritance", hostile("inheritance")),
    Row("inheritance of ignored signals", hostile("inheritance"),
        outside=shell("trap '' HUP INT QUIT USR1 USR2 TERM XFSZ PIPE; ulimit -c 0; umask 7;")),
    Row("ignored SIGCHLD", hostile("calls"), outside=("env", "--ignore-signal=CHLD")),
    Row("inheritance of ignored SIGCHLD", hostile("inheritance"), outside=("env", "--ignore-signal=CHLD")),
    Row("blocked signals", hostile("inheritance"), outside=("env", "--block-signal=CHLD,TERM,USR1")),
    Row("forks", hostile("forks")),
    Row("fork in threads", hostile("fork-in-threads")),
    Row("vfork", hostile("vfork")),
    Row("exec chain", hostile("exec-chain")),
    Row("daemon", hostile("daemon")),
    Row("descriptors closed in threads", hostile("close-in-threads")),
    Row("300 threads", hostile("threads-at-once", "300"),
        options=("--quiet", "--ring-size", "64K", "--threads", "310")),
    Row("300 threads, 64 slots", hostile("threads-at-once", "300"), told=True),
    Row("300 threads in turn", hostile("threads-in-turn")),
    Row("threads with small stacks", hostile("small-stacks")),
    Row("timers", hostile("timers")),
    Row("handlers that record", hostile("handlers")),
    Row("faults that are handled", hostile("faults")),
    Row("coroutines", hostile("coroutines")),
    Row("sandbox", hostile("sandbox")),
    Row("sandbox, large rings", hostile("sandbox"), options=("--quiet", "--ring-size", "4M"), told=True),
    Row("sandbox that kills", hostile("deadly-sandbox")),
    Row("sandbox that kills, 8 large rings", hostile("deadly-sandbox"),
        options=("--quiet", "--ring-size", "4M", "--threads", "8")),
    Row("time-stamp counter forbidden", hostile("without-counter")),
    Row("strict sandbox", hostile("strict-sandbox")),
    Row("dlclose", hostile("dlclose", "libxxhash.so.0")),
    Row("dlclose of libtorch's kind", hostile("dlclose", "libsqlite3.so.0")),
    Row("exit in a thread", hostile("exit-in-thread")),
    Row("main thread ends", hostile("main-thread-ends")),
    Row("cancelled threads", hostile("cancel")),
    Row("locked memory", hostile("locked-memory"), needs="root"),
    Row("locked memory, large rings", hostile("locked-memory"), options=("--quiet", "--ring-size", "4M"), needs="root"),
    Row("abort", hostile("abort")),
    Row("segmentation fault", hostile("segv")),
    Row("SIGKILL", hostile("kill")),
    Row("SIGTERM", hostile("term")),
    Row("little address space", hostile("few-threads"), inside=shell("ulimit -v 60000;"),
        options=("--quiet", "--ring-size", "4M"), told=True),
    Row("less address space", hostile("few-threads"), inside=shell("ulimit -v 12000;"),
        options=("--quiet", "--ring-size", "4M"), told=True),
    Row("8 descriptors", hostile("few-threads"), inside=shell("ulimit -n 8;")),
    Row("3 descriptors", hostile("calls"), inside=shell("ulimit -n 4;"), told=True),
    Row("small files", hostile("large-file", FOLDER + "/large"), inside=shell("ulimit -f 2048;")),
    Row("small files of both", hostile("large-file", FOLDER + "/large"), outside=shell("ulimit -f 3000;"),
        options=("--quiet", "--ring-size", "64K", "--threads", "4"), told=True),
    Row("no files", hostile("calls"), inside=shell("ulimit -f 0;")),
    Row("small stack", hostile("few-threads"), inside=shell("ulimit -s 256;")),
    Row("few descriptors of both", hostile("few-threads"), outside=shell("ulimit -n 12;"), told=True),
    Row("little address space of both", hostile("few-threads"), outside=shell("ulimit -v 250000;"), told=True),
    Row("closed input", hostile("inheritance"), outside=without("<&-")),
    Row("closed output", hostile("inheritance"), outside=without(">&-")),
    Row("closed errors", hostile("inheritance"), outside=without("2>&-"), options=()),
    Row("closed streams", hostile("calls"), outside=without("<&-", ">&-", "2>&-")),
    Row("full output", hostile("calls"), outside=without(">/dev/full")),
    Row("full errors", hostile("calls"), outside=without("2>/dev/full"), options=()),
    Row("no environment", hostile("calls"), inside=("env", "-i"), told=True),
    Row("no randomised addresses", hostile("few-threads"), inside=("setarch", "-R"), needs="setarch"),
    Row("lowest priority", hostile("inheritance"), outside=("nice", "-n", "19")),
    Row("/dev/shm full and read-only", hostile("few-threads"), outside=("unshare", "-m", *SMALL_SHM), needs="root"),
    Row("no /proc", hostile("few-threads"), inside=("unshare", "-m", *shell("mount -t tmpfs none /proc;")),
        needs="root", told=True),
    Row("no /proc for both", hostile("calls"), outside=("unshare", "-m", *shell("mount -t tmpfs none /proc;")),
        needs="root", told=True),
    Row("no /tmp", hostile("calls"), outside=("env", "TMPDIR=/nowhere")),
    Row("AddressSanitizer preloaded", hostile("few-threads"),
        outside=("env", f"LD_PRELOAD={ASAN}", "ASAN_OPTIONS=detect_leaks=0"), needs=ASAN),
    Row("jemalloc preloaded", hostile("few-threads"), outside=("env", f"LD_PRELOAD={JEMALLOC}"), needs=JEMALLOC),
    Row("a preload that is not there", hostile("calls"), inside=("env", "LD_PRELOAD=/nowhere.so"), told=True),
)


def is_possible(row):
    if row.needs == "root":
        return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    if row.needs == "setarch":
        return subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0
    return row.needs != NOT_HERE


def run_row(row, folder, recorded):
    place = folder("recorded" if recorded else "alone")
    os.mkdir(place)
    words = [word.format(hostile=recordings.program("hostile_program"),
                         count=os.path.join(place, "count"), folder=place)
             for word in row.words]
    words = [*row.inside, *words]
    with open(os.path.join(place, "count"), "wb") as file:  # before a limit on files holds
        file.write(bytes(8))
    os.chmod(os.path.join(place, "count"), 0o666)
    if recorded:
        words = [recordings.BINARY, "record", "-o", folder("t.db"), *row.options, "--", *words]
    run = recordings.run([*row.outside, *words], SECONDS)
    counted = sum(recordings.counts_in(os.path.join(place, "count")))
    ours = [line for line in run.err.splitlines() if line.startswith((b"acltape: ", b"next: "))]
    others = [line.replace(place.encode(), b"") for line in run.err.splitlines() if line not in ours]
    return run, counted, ours, others


def what_is_wrong(row, folder):
    alone, calls_alone, _, said_alone = run_row(row, folder, False)
    run, calls, ours, said = run_row(row, folder, True)
    code = alone.code if alone.code is None or alone.code >= 0 else 128 - alone.code
    if alone.code is None or run.code is None:
        return f"still running after {SECONDS} s"
    if row.told and (run.code, run.out, calls, len(ours)) == (4, b"", 0, 1) and not os.path.exists(folder("t.db")):
        return ""  # refused before the program was started
    if (run.out, said) != (alone.out, said_alone):
        return f"it printed {run.out!r} {said!r}, and alone {alone.out!r} {said_alone!r}"
    if run.code != code and not (row.told and code == 0 and run.code == 4 and ours):
        return f"it returned {run.code}, and alone {code}: {ours}"
    if calls != calls_alone:
        return f"it made {calls} calls, and alone {calls_alone}"
    if not os.path.exists(folder("t.db")):
        return "" if row.told and ours else f"there is no trace: {ours}"
    held = recordings.held_by(folder("t.db"))
    if held.damage:
        return f"the trace is damaged: {held.damage}"
    if held.calls > calls:
        return f"{held.calls} calls are in the trace, and {calls} were made"
    if held.calls < calls and not row.told:
        return f"{held.calls} of {calls} calls are in the trace: {held.losses}"
    if held.calls < calls and (not held.losses or held.state == "complete"):
        return f"{held.calls} of {calls} calls are in the trace, and it does not say so"
    if held.state != "complete" and held.calls == calls and code < 128 and not held.losses:
        return f"the trace is '{held.state}', and nothing is missing"
    return ""


def main():
    rows = [row for row in ROWS if not sys.argv[1:] or any(row.name.startswith(word) for word in sys.argv[1:])]
    begin = time.monotonic()
    findings, left_out = 0, []
    for row in rows:
        if not is_possible(row):
            left_out.append(row.name)
            continue
        with recordings.Folder("hostile") as folder:
            wrong = what_is_wrong(row, folder)
        if wrong:
            findings += 1
            print(f"FINDING {row.name}: {wrong}\n"
                  f"  again: {sys.executable} -B {os.path.abspath(__file__)} '{row.name}'", flush=True)
    if left_out:
        print(f"not possible here: {', '.join(left_out)}")
    print(f"{len(rows) - len(left_out)} programs, {findings} findings in {time.monotonic() - begin:.0f} s")
    return 1 if findings or len(left_out) == len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
