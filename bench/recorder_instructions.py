#!/usr/bin/env python3
"""Counts the instructions that recording adds to a step of a program's main thread, by callgrind.

Instructions do not depend on what else the machine does, so they show a change of the recorder that times on
a shared machine do not. They leave out waiting, caches and what other threads and the collector do:
bench/recorder_overhead.py shows those.

A program of torch_npu ($ACLTAPE_TORCH2_PYTHON) runs on the soft device with the profile host_only, where
kernels take no time. It takes a few and more steps within windows that callgrind counts; the difference is
that of the steps. "recorded" is all that the thread did, and "recorder" what it did in the recorder's own
libraries, with the latter's ratio to the program alone. The former varies by the allocator of the C library,
which depends on what lay in memory before: by up to a fifth of a step that replays a graph.

With --against BUILD the recorder of another build or installation is counted beside this one's; its kits have
to lie in BUILD/cache, or be given in $ACLTAPE_CACHE for both.
"""
import argparse
import collections
import contextlib
import ctypes
import io
import os
import re
import subprocess
import sys
import tempfile

from callgrind_dump import read_dumps
from recorded_programs import ROOT, find_python

WORKLOADS = os.path.join(ROOT, "bench", "workloads")
# Name, workload, option of the steps, further words.
PROGRAMS = {"decoder": ["decoder", "--tokens"],
            "decoder, graph": ["decoder", "--tokens", "--graph"],
            "mlp_train": ["mlp_train", "--steps"]}
FEW, MANY = 3, 12


def run_counted(library, workload, option, *words):
    """The program under callgrind: this script calls itself for it."""
    sys.path.insert(0, WORKLOADS)
    window = ctypes.CDLL(library)
    module = __import__(workload)

    def run(steps):
        sys.argv = [workload, option, str(steps), "--device", "npu", *words]
        with contextlib.redirect_stdout(io.StringIO()):
            module.main()

    run(FEW)
    run(MANY)
    for steps in (FEW, MANY):
        window.count_begin()
        run(steps)
        window.count_end(str(steps).encode())


def read_windows(path):
    """Instructions of the main thread by steps of the window, then by (library, function)."""
    return {int(window): counts for window, thread, counts in read_dumps(path) if thread == 1}


def count(build, python, program, payload, folder):
    """Instructions of a step by (library, function); payload None: unrecorded."""
    dump = os.path.join(folder, "dump")
    counted = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--combine-dumps=yes",
               "--separate-threads=yes", f"--callgrind-out-file={dump}", python, "-B", __file__, "--counted",
               os.path.join(ROOT, "build", "tests", "recorder", "libcount_window.so"), *PROGRAMS[program]]
    acltape = os.path.join(build, "bin", "acltape")
    command = [acltape, "run", "--"]
    if payload is not None:
        command = [acltape, "record", "--soft", "--force", "--quiet", "--payload", payload, "-o",
                   os.path.join(folder, "t.db"), "--"]
    environment = dict(os.environ, PYTHONHASHSEED="0", PYTHONMALLOC="malloc", OMP_NUM_THREADS="1",
                       ACLTAPE_SOFT_PROFILE="host_only")
    if os.path.isdir(os.path.join(build, "cache")):
        environment.setdefault("ACLTAPE_CACHE", os.path.join(build, "cache"))
    done = subprocess.run(command + counted, env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    windows = read_windows(dump) if os.path.exists(dump) else {}
    if done.returncode != 0 or len(windows) != 2:
        sys.exit(f"recorder_instructions: {program} failed under callgrind:\n{done.stderr[-2000:]}")
    steps = collections.Counter(windows[MANY])
    steps.subtract(windows[FEW])
    return {key: value / (MANY - FEW) for key, value in steps.items()}


def main():
    if sys.argv[1:2] == ["--counted"]:
        return run_counted(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), metavar="program",
                        help=", ".join(PROGRAMS))
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--against", metavar="BUILD", help="also count the recorder of this build")
    parser.add_argument("--payloads", nargs="+", default=["none", "inputs", "digest"],
                        choices=["none", "inputs", "digest", "all"])
    parser.add_argument("--rows", type=int, default=0, help="functions shown of each way to record")
    args = parser.parse_args()
    for program in args.programs:
        if program not in PROGRAMS:
            parser.error(f"'{program}' is no program; they are {', '.join(PROGRAMS)}")
    python = find_python(npu=True)
    print(f"{'program':>16} {'payload':>15} {'alone':>10} {'recorded':>10} {'recorder':>9} {'of alone':>8}")
    with tempfile.TemporaryDirectory(dir=args.build) as folder:
        for program in args.programs:
            alone = count(args.build, python, program, None, folder)
            for build, before in [(args.build, "")] + [(args.against, "before:")] * bool(args.against):
                for payload in args.payloads:
                    recorded = count(build, python, program, payload, folder)
                    own = sum(value for (library, _), value in recorded.items()
                              if re.match(r"libacltape_(agent|acl_agent|torch)\.so", library))
                    whole = sum(alone.values())
                    print(f"{program:>16} {before + payload:>15} {whole:10.0f} {sum(recorded.values()):10.0f} "
                          f"{own:9.0f} {own / whole:8.1%}", flush=True)
                    added = collections.Counter(recorded)
                    added.subtract(alone)
                    for (library, function), value in added.most_common(args.rows):
                        print(f"{value:12.0f} {library:28} {function[:90]}")


if __name__ == "__main__":
    sys.exit(main())
