#!/usr/bin/env python3
"""Small models of the package transformers compute under the recorder what they compute alone, and replay.

    models_test.py [--all] [--keep FOLDER] [MODEL..]

Each model of model_table.py is run alone and recorded with all values; what it printed must be the same,
the ledger must hold nothing, and both ways of replay must give the recorded bits with no result taken from
the recording. Prints a table. Without names a handful of families runs, with --all every model; --keep
leaves the traces in a folder. ACLTAPE_TORCH2_PYTHON names an interpreter with torch 2.x and transformers,
ACLTAPE_BINARY the executable; code 77 says that there is no such interpreter.
"""
import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

from model_table import MODELS

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))
PROGRAM = os.path.join(FOLDER, "small_model.py")
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON")
SKIPPED = 77
FEW = ("llama", "qwen3_moe", "t5", "swin", "hubert")
# Kinds of ledger rows that say how the recording went and not that something is missing from it.
EXPLAINED = ("recorder_stall",)
REPLAYS = ("eager", "captured")


class Wrong(Exception):
    """A model did something that it should not; the text is for the reader."""


def call(*words, codes=(0,)):
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode not in codes:
        raise Wrong(f"$ {' '.join(words)}\nended with {done.returncode}\n{done.stdout[-3000:]}"
                    f"{done.stderr[-3000:]}")
    return done.stdout


def ledger(trace):
    with sqlite3.connect(trace) as database:
        return [row for row in database.execute("SELECT kind, subject, cause FROM ledger")
                if row[0] not in EXPLAINED]


def recorded(name, folder):
    """The path of the model's trace."""
    trace = os.path.join(folder, f"{name}.db")
    program = (PYTHON, "-B", PROGRAM, name)
    alone = call(*program)
    seen = call(BINARY, "record", "--force", "--payload", "all", "--steps-from", "training step", "-o", trace,
                "--", *program)
    if seen != alone:
        raise Wrong(f"prints something else when it is recorded\n--- alone\n{alone}--- recorded\n{seen}")
    lost = ledger(trace)
    if lost:
        raise Wrong(f"leaves rows in the ledger: {lost}")
    return trace


def replayed(name, trace, mode):
    """The summary of the replay, by quantity."""
    done = json.loads(call(BINARY, "replay", trace, "--mode", mode, "--format", "json", codes=(0, 1)))
    summary = {row["quantity"].strip(): row["value"] for row in done["summary"]}
    again = f"again: {BINARY} replay {trace} --mode {mode}"
    if not str(summary["verdict"]).startswith("equal bit for bit"):
        raise Wrong(f"replay --mode {mode}: {summary['verdict']}\n{again}")
    substituted = {row["message"].split()[0] for row in done["notes"] if row["rule"] == "LOWER-SUBSTITUTED"}
    if substituted != set(MODELS[name].substituted):
        raise Wrong(f"replay --mode {mode} takes from the recording: {sorted(substituted)}\n{again}")
    if mode == "captured" and int(summary["steps run captured"]) < 2:
        raise Wrong(f"replay --mode captured captured {summary['steps run captured']} steps\n{again}")
    return summary


def line(name, folder):
    """The model's line of the table; Wrong when it is not as it should be."""
    trace = recorded(name, folder)
    eager, captured = (replayed(name, trace, mode) for mode in REPLAYS)
    return (f"{name:12}{MODELS[name].family:22}{eager['leaves']:>7}"
            f"{eager['substituted by recorded outputs']:>13}{eager['outputs compared']:>9}"
            f"{captured['outputs compared']:>10}{captured['steps run captured']:>9}")


def has_transformers():
    return PYTHON and subprocess.run([PYTHON, "-c", "import importlib.util, sys; "
                                      "sys.exit(importlib.util.find_spec('transformers') is None)"],
                                     env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
                                     check=False).returncode == 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER", help="where the traces stay")
    options = parser.parse_args(arguments)
    unknown = set(options.model) - set(MODELS)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}")
    if not has_transformers():
        print("skipped: ACLTAPE_TORCH2_PYTHON names no interpreter with torch 2.x and transformers")
        return SKIPPED
    names = options.model or (list(MODELS) if options.all else list(FEW))
    wrong = 0
    print("model       family                 leaves  substituted    eager  captured    steps", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
        for name in names:
            try:
                print(line(name, options.keep or folder), flush=True)
            except Wrong as cause:
                wrong += 1
                print(f"{name:12}WRONG\n{cause}", flush=True)
    print(f"{len(names)} models, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
