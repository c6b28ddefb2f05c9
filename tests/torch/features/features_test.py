#!/usr/bin/env python3
"""Each program of programs.py behaves under the recorder as it does alone: same output, same exit code.

    features_test.py [--separate] [NAME..]

Prints a table. The programs run as children of one process, or, with --separate, each as a program of
its own. ACLTAPE_TORCH2_PYTHON names an interpreter with torch 2.x, ACLTAPE_BINARY the executable; code
77 says that there is no such interpreter.
"""
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))
PROGRAMS = os.path.join(FOLDER, "programs.py")
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON")
SKIPPED = 77


def environment(folder):
    """Compiled kernels of one run must not be found by the other."""
    return {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"), "PYTHONHASHSEED": "0"}


def together(names, prefix, folder):
    done = subprocess.run([*prefix, PYTHON, "-B", PROGRAMS, "--each", *names], text=True,
                          capture_output=True, env=environment(folder), check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def separately(names, prefix, folder):
    results = {}
    for name in names:
        done = subprocess.run([*prefix, PYTHON, "-B", PROGRAMS, name], text=True,
                              capture_output=True, env=environment(folder), check=False)
        results[name] = {"code": done.returncode, "output": done.stdout, "errors": done.stderr}
    return results


def names_of_programs(arguments):
    wanted = [name for name in arguments if not name.startswith("-")]
    if wanted:
        return wanted
    return subprocess.run([PYTHON, "-B", PROGRAMS], text=True, capture_output=True, check=True,
                          env=environment("/nonexistent")).stdout.split()


def main(arguments):
    if not PYTHON:
        print("skipped: ACLTAPE_TORCH2_PYTHON names no interpreter with torch 2.x")
        return SKIPPED
    names = names_of_programs(arguments)
    run = separately if "--separate" in arguments else together
    with tempfile.TemporaryDirectory() as folder:
        alone = run(names, [], os.path.join(folder, "alone"))
        trace = os.path.join(folder, "t.db")
        recorded = run(names, [BINARY, "record", "--force", "-o", trace, "--payload", "none",
                                    "--"],
                       os.path.join(folder, "recorded"))
    different = []
    for name in names:
        codes = f"{alone[name]['code']} {recorded[name]['code']}"
        same = all(alone[name][part] == recorded[name][part] for part in ("code", "output"))
        print(f"{name:32} {codes:8} {'equal' if same else 'DIFFERENT'}")
        if not same:
            different.append(name)
    for name in different:
        print(f"\n--- {name} alone\n{alone[name]['output']}--- {name} recorded\n"
              f"{recorded[name]['output']}{recorded[name].get('errors', '')}"
              f"--- again: {sys.argv[0]} --separate {name}")
    print(f"{len(names)} programs, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
