#!/usr/bin/env python3
"""Records programs of torch_npu many times on a soft device that delays and reorders tasks, and replays them.

Each run has a seed of its own (ACLTAPE_SOFT_JITTER), under which the program is recorded and its trace
replayed eagerly and captured. Counted are the runs whose program failed or printed something else than it
does without jitter and without a recorder, those whose ledger has a notice or worse, and the replays in which a bit
differs or an output is missing. Exit code 1 when there is one; the traces of such runs are kept.

"waited" counts the runs in which the program waited for room in a ring of the recorder, because a value was as
large as the ring or the machine was busy. That changes times alone.

Without names the programs of DEFAULT run; the others are decoders as graphs and by compilers, recurrent
layers, and small models of transformers. planted_race shows that the jitter is felt: it forgets to wait for
a stream, and its runs are wrong.
"""
import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKLOADS = os.path.join(ROOT, "bench", "workloads")
PROGRAMS = os.path.join(ROOT, "tests", "npu", "programs")
MODELS = os.path.join(ROOT, "tests", "torch", "models")
sys.path.insert(0, MODELS)
import model_table  # noqa: E402

# name: the command after the interpreter
COMMANDS = {
    "decoder": [os.path.join(WORKLOADS, "decoder.py"), "--device", "npu", "--tokens", "6"],
    "npu_streams": [os.path.join(WORKLOADS, "npu_streams.py")],
    "training": [os.path.join(PROGRAMS, "training.py")],
    "task_queue": [os.path.join(PROGRAMS, "task_queue.py")],
    "planted_race": [os.path.join(WORKLOADS, "npu_streams.py"), "--missing-wait"],
    "recurrent": [os.path.join(PROGRAMS, "recurrent.py")],
    **{name: [os.path.join(PROGRAMS, "graphs.py"), name] for name in ("graph", "npugraph_ex", "torchair")},
    **{name: [os.path.join(MODELS, "small_model.py"), name, "--device", "npu"] for name in model_table.MODELS},
}
DEFAULT = ["decoder", "npu_streams", "training", "task_queue"]
# Models that are not replayed at the level that acltape takes by itself: a layer that the adapter calls by name has no
# value there.
LEVELS = {"recurrent": "acl"}
WAITED = "recorder_stall"
# Operators that a replay may take from the recording: leaves of the model on the CPU that no device operator computes.
SUBSTITUTED = {name: set(row.substituted) for name, row in model_table.MODELS.items()}


class Run:
    """The outcome of one recording and its replays; `wrong` lists what went wrong, in words."""

    def __init__(self):
        self.wrong = []
        self.waited = False
        self.compared = {}

    def note(self, text):
        self.wrong.append(text)


def call(words, seed):
    environment = {**os.environ, "ACLTAPE_SOFT_JITTER": str(seed)}
    return subprocess.run(words, env=environment, capture_output=True, text=True)


def record(args, name, seed, expected, trace):
    run = Run()
    done = call([args.binary, "record", "--soft", "--force", "--quiet", "--payload", "all", "-o", trace, "--",
                 args.python, *COMMANDS[name]], seed)
    if done.returncode != 0:
        run.note(f"record ended with {done.returncode}: {done.stderr[-2000:]}")
        return run
    if done.stdout != expected:
        run.note(f"it printed\n{done.stdout}instead of\n{expected}")
    with sqlite3.connect(trace) as database:
        ledger = database.execute("SELECT severity, kind, subject, cause FROM ledger "
                                  "WHERE severity <> 'info'").fetchall()
    run.waited = any(row[1] == WAITED for row in ledger)
    ledger = [row for row in ledger if row[1] != WAITED]
    if ledger:
        run.note(f"the ledger has {ledger}")
    for mode in ("eager", "captured"):
        level = ["--level", LEVELS[name]] if name in LEVELS else []
        replayed = call([args.binary, "replay", trace, *level, "--mode", mode, "--format", "json"], seed)
        if replayed.returncode not in (0, 1):
            run.note(f"the {mode} replay ended with {replayed.returncode}: {replayed.stderr[-2000:]}")
            continue
        found = json.loads(replayed.stdout)
        summary = {row["quantity"].strip(): row["value"] for row in found["summary"]}
        run.compared[mode] = summary["outputs compared"]
        replaced = {note["message"].split(" is replaced")[0] for note in found["notes"]
                    if note["rule"] == "LOWER-SUBSTITUTED"}
        if summary["outputs different"] or replaced - SUBSTITUTED.get(name, set()):
            run.note(f"the {mode} replay: {summary}, substituted: {sorted(replaced)}")
        if not summary["outputs compared"]:
            run.note(f"the {mode} replay compared nothing")
    return run


def jitter(args, folder):
    failures = 0
    print(f"{'program':12} {'runs':>4} {'wrong':>5} {'waited':>6} {'outputs compared':>16}  seconds a run", flush=True)
    for name in args.programs or DEFAULT:
        alone = call([args.binary, "run", "--", args.python, *COMMANDS[name]], 0)
        if alone.returncode != 0:
            sys.exit(f"{name} fails without jitter:\n{alone.stderr}")
        wrong = waited = compared = 0
        begin = time.monotonic()
        for seed in range(args.first_seed, args.first_seed + args.runs):
            trace = os.path.join(folder, f"{name}-{seed}.db")
            run = record(args, name, seed, alone.stdout, trace)
            waited += run.waited
            compared += sum(run.compared.values())
            if run.wrong:
                wrong += 1
                print(f"{name}, seed {seed}, {trace}:\n" + "\n".join(run.wrong), flush=True)
            else:
                os.unlink(trace)
        seconds = (time.monotonic() - begin) / args.runs
        print(f"{name:12} {args.runs:4} {wrong:5} {waited:6} {compared:16}  {seconds:.1f}", flush=True)
        failures += wrong
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *COMMANDS], metavar="PROGRAM",
                        help="of " + ", ".join(COMMANDS) + "; default " + ", ".join(DEFAULT))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--binary", default=os.environ.get(
        "ACLTAPE_BINARY", os.path.join(ROOT, "build", "bin", "acltape")))
    parser.add_argument("--python", default=os.environ.get("ACLTAPE_TORCH2_PYTHON", "python3"),
                        help="an interpreter with torch and torch_npu")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="acltape_npu_jitter_")
    failures = jitter(args, folder)
    if failures == 0:
        shutil.rmtree(folder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
