#!/usr/bin/env python3
"""The wheel that `pip install .` makes: it has the command, the module and their version, and records.

ACLTAPE_BUILD_FOLDER names the build folder, in which the folder of the wheel's own build is kept: made
again it compiles what changed. The build compiles the product once more, so the test is skipped unless
ACLTAPE_TEST_WHEEL is set, as `scripts/test --stage wheel` does; and where there is no package index.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ACLTAPE_BUILD_FOLDER", os.path.join(SOURCE, "build"))
TORCH_PYTHON = os.environ.get("ACLTAPE_PYTHON", "/usr/bin/python3")
PROGRAM = """
import torch
w = torch.ones(4, 4)
for _ in range(4):
    w = torch.tanh(w @ w)
"""
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


def interpreter_of(version):
    """An interpreter of this version on PATH, or among those of pyenv; None if there is none."""
    found = [shutil.which(f"python{version}"),
             *glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}"))]
    for path in filter(None, found):
        if run(path, "-c", "import sqlite3, venv").returncode == 0:
            return path
    return None


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


class Wheel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_wheel_")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        if not os.environ.get("ACLTAPE_TEST_WHEEL"):
            raise unittest.SkipTest("it compiles everything again; scripts/test --stage wheel runs it")
        tools = cls.environment_at("tools")
        if run(tools, "-m", "pip", "install", "--quiet", "scikit-build-core>=0.10").returncode != 0:
            raise unittest.SkipTest("no package index has scikit-build-core; pip needs it to build the wheel")
        wheels = os.path.join(cls.folder, "wheels")
        cls.checked(tools, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels,
                    f"--config-settings=build-dir={os.path.join(BUILD, 'wheel')}", SOURCE,
                    env={**os.environ, "CCACHE_BASEDIR": SOURCE, "CCACHE_NOHASHDIR": "1"})
        cls.wheel, = glob.glob(os.path.join(wheels, "*.whl"))
        cls.python = cls.environment_at("user")
        # From the wheel alone: no index, no other package.
        cls.checked(cls.python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", cls.wheel)
        cls.acltape = os.path.join(os.path.dirname(cls.python), "acltape")

    @classmethod
    def environment_at(cls, name, interpreter=sys.executable):
        """The interpreter of a new virtual environment."""
        folder = os.path.join(cls.folder, name)
        made = run(interpreter, "-m", "venv", folder)
        if made.returncode != 0:
            raise unittest.SkipTest(f"{interpreter} makes no virtual environments: {made.stdout}")
        return os.path.join(folder, "bin", "python3")

    @classmethod
    def checked(cls, *command, **options):
        done = run(*command, cwd=cls.folder, **options)
        if done.returncode != 0:
            raise AssertionError(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_command_and_module_have_the_version_of_the_project(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt")) as file:
            version = re.search(r"project\(acltape VERSION (\S+)", file.read())[1]
        self.assertIn(f"acltape-{version}-py3-none-", os.path.basename(self.wheel))
        self.assertIn(version, self.checked(self.acltape, "--version"))
        self.assertIn(version, self.checked(self.python, "-m", "acltape", "--version"))
        self.assertEqual(self.checked(self.python, "-c", "import acltape; print(acltape.__name__)"), "acltape\n")

    def test_a_program_is_recorded_and_replayed(self):
        trace = os.path.join(self.folder, "t.db")
        self.checked(self.acltape, "record", "--payload", "all", "-o", trace, "--", TORCH_PYTHON, "-c", PROGRAM)
        said = self.checked(self.acltape, "replay", trace, "--mode", "captured")
        self.assertIn("equal bit for bit", said)
        # The module reads the trace with nothing but Python.
        count = "import acltape, sys; print(len(acltape.Trace(sys.argv[1]).calls(op='aten::tanh')))"
        self.assertEqual(self.checked(self.python, "-c", count, trace), "4\n")

    def test_every_python_from_3_9_on_installs_and_reads_with_it(self):
        trace = os.path.join(self.folder, "each.db")
        self.checked(self.acltape, "record", "--payload", "all", "-o", trace, "--", TORCH_PYTHON, "-c", PROGRAM)
        count = "import acltape, sys; print(len(acltape.Trace(sys.argv[1]).calls(op='aten::tanh')))"
        for version in VERSIONS:
            with self.subTest(python=version):
                interpreter = interpreter_of(version)
                if interpreter is None:
                    self.skipTest(f"there is no python{version}")
                python = self.environment_at(version, interpreter)
                self.checked(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", self.wheel)
                self.assertEqual(self.checked(python, "-c", count, trace), "4\n")
                acltape = os.path.join(os.path.dirname(python), "acltape")
                self.assertIn("equal bit for bit", self.checked(acltape, "replay", trace))
                # Without pyarrow one sentence says what to install, for the interpreter of this environment.
                # (ACLTAPE_PYTHON, with which the tests choose a PyTorch, would name another one.)
                said = run(acltape, "export", trace, "--to", "parquet", "-o", os.path.join(self.folder, "p" + version),
                           env={name: value for name, value in os.environ.items() if name != "ACLTAPE_PYTHON"})
                self.assertEqual(said.returncode, 4, said.stdout + said.stderr)
                self.assertIn(f"{python} -m pip install pyarrow", said.stderr)


if __name__ == "__main__":
    unittest.main()
