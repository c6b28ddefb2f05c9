#!/usr/bin/env python3
"""Programs that call every operator with a kernel, as programs that nobody here wrote call them: plain
two-phase calls through the public headers, built by a plain compiler line. tests/opapi writes them of calls
whose results its references have accepted (program_writer.h); the same bits must come out. They run plainly
and under settings that show mistakes, are recorded, and replay eager and captured.

ACLTAPE_WRITE_PROGRAMS names the folder of the programs; the rest is as in recorded_test.py.
"""
import collections
import concurrent.futures
import ctypes
import json
import os
import re
import subprocess
import tempfile
import unittest

import acl_programs
from conformance import PASSES, REPLAYS
from recorded_test import ACLTAPE

FOLDER = os.environ.get("ACLTAPE_WRITE_PROGRAMS",
                        os.path.join(acl_programs.SOURCE, "build", "generated", "programs"))



def outside():
    """Operators with a kernel that no program calls; the file says why."""
    with open(os.path.join(acl_programs.FOLDER, "generated_outside.txt")) as file:
        return [line.strip() for line in file if not line.startswith("#")]


def with_kernel():
    """The operators that have a kernel on the soft device, by their domain."""
    ctypes.CDLL(os.path.join(acl_programs.LIBRARIES, "libnnopbase.so"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(os.path.join(acl_programs.LIBRARIES, "libopapi.so"))
    operators = []
    for table in ("aclnn_ops.json", "vllm_ascend_ops.json", "atb_ops.json"):
        with open(os.path.join(acl_programs.SOURCE, "acl", "data", table)) as file:
            operators += json.load(file)
    return {operator["op"]: operator["domain"] for operator in operators
            if library.SoftOperatorHasKernel(operator["op"].encode())}


def called():
    """Counts the calls of each operator in the programs."""
    calls = collections.Counter()
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith(".c"):
            with open(os.path.join(FOLDER, name)) as file:
                calls.update(re.findall(r"^  CALL\((\w+),", file.read(), re.MULTILINE))
    return calls


class Generated(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_generated_")
        cls.names = sorted(name.removesuffix(".c") for name in os.listdir(FOLDER) if name.endswith(".c"))
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count())
        cls.built = {name: pool.submit(cls.compile, name) for name in cls.names}

    @classmethod
    def compile(cls, name):
        binary = os.path.join(cls.folder, name)
        line = [acl_programs.COMPILERS[".c"], os.path.join(FOLDER, name + ".c"), "-I" + acl_programs.FOLDER,
                "-I" + os.path.join(acl_programs.SDK, "include"),
                "-I" + os.path.join(acl_programs.SDK, "include", "aclnnop"), "-L" + acl_programs.LIBRARIES,
                "-lascendcl", "-lopapi", "-lnnopbase", "-o", binary]
        done = subprocess.run(line, capture_output=True, text=True)
        return binary, done.returncode, f"$ {' '.join(line)}\n{done.stdout}{done.stderr}"

    def program(self, name):
        """The words that start a program."""
        binary, code, evidence = self.built[name].result()
        self.assertEqual(code, 0, evidence)
        return [binary, os.path.join(FOLDER, name + ".data")]

    def run_words(self, words, environment=None):
        done = subprocess.run(words, capture_output=True, text=True, timeout=300,
                              env=acl_programs.environment(environment))
        return done, f"$ {' '.join(words)} ({environment})\n{done.stdout}{done.stderr}"

    def test_every_operator_with_a_kernel_is_called(self):
        kernels, calls = with_kernel(), called()
        domains = collections.Counter(kernels[name] for name in calls if name in kernels)
        print(f"{len(calls)} of {len(kernels)} operators with a kernel, {sum(calls.values())} calls; "
              + ", ".join(f"{domain} {count}" for domain, count in sorted(domains.items())))
        self.assertEqual(sorted(set(kernels) - set(calls)), outside())
        self.assertEqual(sorted(set(calls) - set(kernels)), [])

    def test_the_bits_are_those_that_the_references_accepted(self):
        for name in self.names:
            words = self.program(name)
            for title, settings in PASSES:
                with self.subTest(program=name, setting=title):
                    done, evidence = self.run_words(words, settings)
                    self.assertEqual(done.returncode, 0, evidence)
                    self.assertTrue(done.stdout.endswith("ok\n"), evidence)

    def test_recorded_they_replay_eager_and_captured(self):
        equal = collections.Counter()
        for name in self.names:
            trace = os.path.join(self.folder, name + ".db")
            with self.subTest(program=name):
                done, evidence = self.run_words([ACLTAPE, "record", "--force", "--quiet", "--level", "acl",
                                                 "--payload", "all", "-o", trace, "--", *self.program(name)])
                self.assertEqual(done.returncode, 0, evidence)
                self.assertTrue(done.stdout.endswith("ok\n"), evidence)
            for mode in REPLAYS:
                with self.subTest(program=name, mode=mode):
                    done, evidence = self.run_words([ACLTAPE, "replay", trace, "--mode", mode, "--format", "json"])
                    self.assertEqual(done.returncode, 0, evidence)
                    summary = {row["quantity"].strip(): row["value"] for row in json.loads(done.stdout)["summary"]}
                    for quantity in ("outputs different", "substituted by recorded outputs", "unknown, left out"):
                        self.assertEqual(summary[quantity], 0, evidence)
                    self.assertGreater(summary["outputs equal"], 0, evidence)
                    equal[mode] += summary["outputs equal"]
        print("outputs equal: " + ", ".join(f"{mode} {count}" for mode, count in equal.items()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
