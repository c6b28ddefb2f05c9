"""Helpers for the tests of the installed NPU adapter, which run its programs on the soft device.

The environment names what is tested: ACLTAPE_BINARY (the executable) and ACLTAPE_TORCH2_PYTHON (an
interpreter that has torch and torch_npu). Without the second one the tests are skipped (code 77).
"""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zlib

FOLDER = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(FOLDER, "programs")
SOURCE = os.path.dirname(os.path.dirname(FOLDER))
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON")
WORKLOADS = os.path.join(SOURCE, "bench", "workloads")
SKIPPED = 77
LONGEST = 280  # seconds


class NpuTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="acltape_npu_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def call(self, *words, code=0, environment=None):
        """Runs a command in the test's folder; what it printed."""
        words = [str(word) for word in words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST,
                              cwd=self.folder, env={**os.environ, **(environment or {})})
        self.assertEqual(done.returncode, code,
                         f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done

    def script(self, text):
        """Writes a program of the test; its path."""
        path = os.path.join(self.folder, "script.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def program(self, name, *arguments, environment=None):
        """Runs a program of programs/ on the soft device; it compares with the CPU itself."""
        done = self.call(BINARY, "run", "--", PYTHON, os.path.join(PROGRAMS, name), *arguments,
                         environment=environment)
        self.assertEqual(done.stdout.splitlines()[-1:], ["equal"], done.stdout + done.stderr)
        return done


def data_of_page(path):
    """The JSON parts of a page by name; a column is its bytes."""
    parts = {}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for kind, name, body in re.findall(r'<script type="([^"]*)" data-name="([^"]*)"[^>]*>(.*?)</script>', text, re.S):
        if kind == "application/json":
            parts[name] = json.loads(body)
        elif kind == "application/x-deflated-json":
            parts[name] = json.loads(zlib.decompress(base64.b64decode(body)))
    return parts


def main():
    if not PYTHON:
        print("ACLTAPE_TORCH2_PYTHON names no interpreter with torch_npu; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
