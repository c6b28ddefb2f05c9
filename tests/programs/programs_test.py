#!/usr/bin/env python3
"""ACL programs build with a plain compiler line and run on the soft device, linked or by dlopen."""
import os
import shutil
import subprocess
import tempfile
import unittest

import acl_programs
from acl_programs import LIBRARIES, NEEDS, RUNS

SEEDS = range(1, 5)
CLANGS = {".c": shutil.which("clang"), ".cpp": shutil.which("clang++")}


class ProgramTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_programs_")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def call(self, *command, **options):
        """stdout of a command that ends with 0."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
        self.assertEqual(done.returncode, 0,
                         f"\n$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def build(self, source, **how):
        lacking = acl_programs.missing(source)
        if lacking:
            self.skipTest(f"{source}: the SDK does not export {', '.join(lacking)}")
        binary = os.path.join(self.folder, f"{source}.bin")
        if not os.path.exists(binary):
            self.call(*acl_programs.build_line(source, binary, **how))
        return binary

    def run_program(self, binary, options=(), environment=None):
        return self.call(binary, *options, env=acl_programs.environment(environment))

    def check(self, run, **how):
        binary = self.build(run.source, **how)
        shown = self.run_program(binary, run.options, run.environment)
        path = os.path.join(acl_programs.FOLDER, "expected", f"{run.name}.txt")
        with open(path) as file:
            expected = file.read()
        if "digest: " not in expected:
            # Its last bits depend on the processor, as those of a matrix product do.
            shown = "".join(line for line in shown.splitlines(keepends=True)
                            if not line.startswith("digest: "))
        self.assertEqual(shown, expected, path)
        return binary


def add_runs(how, runs=RUNS):
    """Gives a class one test per row of the table, built in the way that `how` says."""
    def decorate(cls):
        for run in runs:
            def test(self, run=run):
                self.check(run, **how(run))
            name = "_".join(("test", run.source.split(".")[0], *run.options)).replace("-", "")
            setattr(cls, name, test)
        return cls
    return decorate


@add_runs(lambda run: {})
class Linked(ProgramTest):
    """gcc prog.c -I$SDK/include -L$SDK/lib64 -lascendcl -lopapi -lnnopbase -lacl_op_compiler"""

    def test_captured_workload_gives_the_same_bits(self):
        binary = self.build("workload.cpp")
        eager = self.run_program(binary)
        self.assertIn("digest: ", eager)
        self.assertEqual(self.run_program(binary, ("--capture",)), eager)


@add_runs(lambda run: {"dlopen": True})
class Dlopen(ProgramTest):
    """The sources as programs that look every function up by name."""

    def check(self, run, **how):
        binary = super().check(run, **how)
        needed = self.call("readelf", "-d", binary)
        self.assertNotIn("libascendcl", needed)
        self.assertNotIn("libopapi", needed)
        return binary

    def test_a_missing_library_is_named(self):
        binary = self.build("single_op.c", dlopen=True)
        done = subprocess.run([binary], capture_output=True, text=True,
                              env=acl_programs.environment({"LD_LIBRARY_PATH": self.folder}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("libascendcl.so", done.stderr)


@unittest.skipUnless(all(CLANGS.values()), "clang is not installed")
@add_runs(lambda run: {"compiler": CLANGS[os.path.splitext(run.source)[1]]},
          {run.source: run for run in reversed(RUNS)}.values())
class Clang(ProgramTest):
    """The plain line with the other compiler: each program in the first of its ways to run."""


class Several(ProgramTest):
    """Programs of several processes, or with a planted fault."""

    def test_two_processes_share_memory_and_notifies(self):
        self.check(acl_programs.SHARED_MEMORY)

    def test_a_callback_learns_which_kernel_failed(self):
        self.check(acl_programs.EXCEPTION_INFO)


class Sdk(ProgramTest):
    """Headers and libraries as those of a toolkit."""

    def test_headers_are_found_by_each_name_that_programs_use(self):
        names = ("acl/acl.h", "acl/acl_base.h", "acl/acl_op_compiler.h", "acl/acl_rt.h",
                 "aclnn/acl_meta.h", "aclnn/aclnn_base.h", "aclnnop/aclnn_add.h",
                 "aclnnop/level2/aclnn_add.h", "acl_meta.h", "level2/aclnn_mul.h")
        folders = [os.path.join(acl_programs.SDK, "include", *part)
                   for part in ((), ("acl",), ("aclnn",), ("aclnnop",))]
        text = "".join(f'#include "{name}"\n' for name in names)
        text += "int main(void) { return (int)sizeof(&aclnnMulGetWorkspaceSize) - 8; }\n"
        for suffix, compiler in acl_programs.COMPILERS.items():
            source = os.path.join(self.folder, "headers" + suffix)
            with open(source, "w") as file:
                file.write(text)
            self.call(compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", source,
                      *("-I" + folder for folder in folders))

    def test_the_line_of_the_guide_builds_a_program(self):
        with open(os.path.join(acl_programs.SOURCE, "docs", "guide.md")) as file:
            line, = (line.split() for line in file if line.startswith("gcc prog.c "))
        binary = os.path.join(self.folder, "prog")
        words = {"gcc": acl_programs.COMPILERS[".c"], "prog": binary,
                 "prog.c": os.path.join(acl_programs.FOLDER, "single_op.c")}
        self.call(*(words.get(word, word.replace("$SDK", acl_programs.SDK)) for word in line))
        self.assertIn("passed", self.run_program(binary))

    def test_the_operator_compiler_exports_nothing(self):
        names = acl_programs.exported("libacl_op_compiler.so")
        self.assertEqual({name for name in names if name.startswith("acl")}, set())

    def test_the_libraries_find_each_other_wherever_they_lie(self):
        moved = shutil.copytree(LIBRARIES, os.path.join(self.folder, "lib64"))
        found = self.call("ldd", os.path.join(moved, "libopapi.so"),
                          env=acl_programs.environment({"LD_LIBRARY_PATH": ""}))
        for library in ("libascendcl.so", "libnnopbase.so"):
            self.assertIn(f"{library} => {moved}/{library}", found)

    def test_needed_functions_are_those_that_the_programs_call(self):
        for source, names in NEEDS.items():
            with open(os.path.join(acl_programs.FOLDER, source)) as file:
                text = file.read()
            for name in names:
                self.assertIn(f"{name}(", text)


class PlantedRace(ProgramTest):
    """A missing event shows under seeded jitter, and the event cures it."""

    def digest(self, seed, *options):
        environment = {"ACLTAPE_SOFT_JITTER": str(seed)} if seed else {}
        shown = self.run_program(self.build("planted_race.cpp"), options, environment)
        self.assertRegex(shown, r"^digest: [0-9a-f]{16}\n$")
        return shown

    def find_race(self, *options):
        """Digests by seed, up to the first that differs from the one before."""
        digests = {}
        for seed in SEEDS:
            digests[seed] = self.digest(seed, *options)
            if len(set(digests.values())) > 1:
                return digests
        return self.fail(f"no race with the seeds {list(SEEDS)}: {digests}")

    def test_without_the_event_the_bits_depend_on_the_seed(self):
        self.find_race()

    def test_with_the_event_they_do_not(self):
        expected = self.digest(None, "--event")
        for seed in SEEDS:
            self.assertEqual(self.digest(seed, "--event"), expected, f"seed {seed}")

    def test_in_a_graph_each_seed_gives_its_own_bits_again(self):
        for seed, digest in self.find_race("--capture").items():
            self.assertEqual(self.digest(seed, "--capture"), digest, f"seed {seed}")

    def test_in_a_graph_with_the_event_all_seeds_give_the_same(self):
        expected = self.digest(None, "--event")
        for seed in SEEDS:
            self.assertEqual(self.digest(seed, "--capture", "--event"), expected, f"seed {seed}")


if __name__ == "__main__":
    unittest.main(verbosity=2)  # names what is skipped, and why
