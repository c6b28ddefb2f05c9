"""Tests of fleets run in a virtual environment with their packages, which is made once in the build folder.

A test begins with `packages.enter()`: it goes on in that environment, or ends as skipped where no index has them.
"""
import fcntl
import importlib.util
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(SOURCE, "python"), os.path.join(SOURCE, "tests", "cli"), HERE]

VERSIONS = {"pyarrow": "26.0.1", "duckdb": "2.0.1", "pandas": "3.1.1", "polars": "2.1.0"}
# Spark has 400 MB, so it has an environment of its own.
SPARK = {"pyarrow": "26.0.1", "duckdb": "2.0.1", "pyspark": "4.3.0"}
SKIPPED = 77


def enter(versions=VERSIONS, name="venv-fleet"):
    names = list(versions)
    if all(importlib.util.find_spec(name) for name in names):
        return
    from harness import BINARY
    folder = os.path.join(os.path.dirname(os.path.dirname(BINARY)), name)
    python = os.path.join(folder, "bin", "python3")
    if sys.executable != python and _make(folder, python, versions):
        os.execv(python, [python, "-B", *sys.argv])
    print(f"skipped: {', '.join(names)} are not here, and no package index has them")
    sys.exit(SKIPPED)


def _make(folder, python, versions):
    """True if the environment is there and has the packages. Tests that run side by side make it one at a time."""
    look = [python, "-c", "import " + ", ".join(versions)]
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(python) and subprocess.run(look, capture_output=True).returncode == 0:
            return True
        wanted = [f"{name}=={version}" for name, version in versions.items()]
        words = [[sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "--quiet", *wanted]]
        return all(subprocess.run(each, capture_output=True).returncode == 0 for each in words)
