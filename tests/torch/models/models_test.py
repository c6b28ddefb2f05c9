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
import re
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
FEW = ("llama", "qwen3_moe", "t5", "swin", "wav2vec2")
# Kinds of ledger rows that a model may leave: they say that something was done well, not that it was lost.
EXPLAINED = ()


class Wrong(Exception):
    """What a model did that it should not; the text is for the reader."""


def call(*words):
    done = subprocess.run(words, text=True, capture_output=True, check=False, cwd=FOLDER,
                          env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    return done


def checked(*words):
    done = call(*words)
    if done.returncode != 0:
        raise Wrong(f"$ {' '.join(words)}\nended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def ledger(trace):
    with sqlite3.connect(trace) as database:
        return [row for row in database.execute("SELECT kind, subject, cause FROM ledger")
                if row[0] not in EXPLAINED]


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise Wrong(f"no line like {pattern} in\n{text}")
    return int(found.group(1))


def replayed(trace, mode):
    """(outputs compared, outputs different, results taken from the recording, leaves without a lowering)"""
    done = call(BINARY, "replay", trace, "--mode", mode, "--format", "json")
    if done.returncode not in (0, 1):
        raise Wrong(f"replay --mode {mode} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def model(name, folder):
    """The cells of the model's line; Wrong when the recording already differs."""
    trace = os.path.join(folder, f"{name}.db")
    program = [PYTHON, "-B", PROGRAM, name]
    alone = checked(*program)
    recorded = checked(BINARY, "record", "--force", "--payload", "all", "-o", trace, "--", *program)
    if recorded != alone:
        raise Wrong(f"prints something else when it is recorded\n--- alone\n{alone}--- recorded\n{recorded}")
    return trace
