"""Helpers that the end-to-end tests share: they run acltape and read its output.

The environment names what is tested: ACLTAPE_BINARY (the executable). Every failing check shows the
command that was run and what it printed.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
WORKLOADS = os.path.join(SOURCE, "bench", "workloads")

# Four marked steps, each with an input of its own. A state is carried from step to step.
STEPS = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
weight = torch.randn(8, 8)
state = torch.zeros(8, 8)
for i in range(4):
    x = torch.randn(8, 8)
    with record_function(f"step {i}"):
        y = torch.tanh(torch.mm(x, weight))
        best = torch.argmax(y)
        state.mul_(0.5).add_(y)
        out = state + 1
"""


# To import torch would take a second of processor time in each test.
HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def find_torch_python():
    candidates = [os.environ.get("ACLTAPE_PYTHON"), shutil.which("python3"), "/usr/bin/python3"]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", HAS_TORCH], capture_output=True).returncode == 0:
            return candidate
    return None


TORCH_PYTHON = find_torch_python()


class Result:
    def __init__(self, command, done):
        self.command, self.code = command, done.returncode
        self.out, self.err = done.stdout, done.stderr

    def __str__(self):
        return f"\n$ {' '.join(self.command)}\nexit code {self.code}\n{self.out}{self.err}"


def run(*command, **options):
    command = [str(word) for word in command]
    return Result(command, subprocess.run(command, capture_output=True, text=True, **options))


def marks_of(text):
    """The number of each marked line, by its mark: "#: NAME" at its end."""
    return {line.split("#: ")[1].strip(): number
            for number, line in enumerate(text.splitlines(), 1) if "#: " in line}


class CommandTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_cli_")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, text):
        """A Python program of the test, as a file."""
        path = self.path(f"{self.id().rsplit('.', 1)[-1]}.py")
        with open(path, "w") as file:
            file.write(text)
        return path

    def acltape(self, *words, code=0, **options):
        result = run(BINARY, *words, **options)
        self.assertEqual(result.code, code, result)
        return result

    def record(self, trace, *words, payload="inputs", code=0, options=()):
        return self.acltape("record", "--force", "-o", trace, "--payload", payload, *options, "--",
                            *words, code=code)

    def trace_of_steps(self, name):
        """A trace of STEPS with all results, under this name; recorded once for a class of tests."""
        trace = self.path(name)
        if not os.path.exists(trace):
            self.record(trace, TORCH_PYTHON, self.script(STEPS), payload="all",
                        options=["--steps-from", "step *"])
        return trace

    def changed_copy(self, good, name, *statements):
        """A copy of a trace, as `name`, after these statements of SQL."""
        trace = self.path(name)
        shutil.copy(good, trace)
        connection = sqlite3.connect(trace)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return trace

    def json(self, *words, code=0, **options):
        return json.loads(self.acltape(*words, "--format", "json", code=code, **options).out)

    def reproduces(self, command, code=1, **options):
        """A printed command, run as it stands, ends with this code."""
        environment = dict(options.pop("env", os.environ))
        environment["PATH"] = f"{os.path.dirname(BINARY)}:{environment['PATH']}"
        again = run("sh", "-c", command, env=environment, **options)
        self.assertEqual(again.code, code, again)
        return again

    def assertSentence(self, result, *words):
        """stderr is one line from acltape, without a trace of the inside, that says these words."""
        lines = result.err.strip().splitlines()
        self.assertEqual(len(lines), 1, result)
        self.assertTrue(lines[0].startswith("acltape: "), result)
        for word in words:
            self.assertIn(word, lines[0], result)


def main():
    if TORCH_PYTHON is None:
        sys.exit("the end-to-end tests need a python3 that imports torch; scripts/setup installs it")
    unittest.main()
