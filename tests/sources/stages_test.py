#!/usr/bin/env python3
"""Every test of the build belongs to one stage of scripts/test, and every stage can be run.

ACLTAPE_BUILD_FOLDER names the build folder, whose tests ctest lists.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from source_text import ROOT

STAGES = os.path.join(ROOT, "tests", "stages")
sys.path.insert(0, STAGES)
import drive  # noqa: E402
import run_tests  # noqa: E402
import table  # noqa: E402

BUILD = os.environ.get("ACLTAPE_BUILD_FOLDER", os.path.join(ROOT, "build"))


def stage(name, **columns):
    return table.Stage(name=name, does="", budget=1, **columns)


def made(name, command="python3"):
    return table.Test(name, (command,), {})


class StagesOfATest(unittest.TestCase):
    def check(self, test, stages, expected):
        found = table.stages_of(test, {row.name: row for row in stages})
        self.assertEqual([row.name for row in found], expected)

    def test_what_no_stage_names_belongs_to_the_one_for_its_kind(self):
        stages = [stage("a", default_of="compiled"), stage("b", default_of="script")]
        self.check(made("New", "/build/bin/new_test"), stages, ["a"])
        self.check(made("cli.New", "/usr/bin/python3.11"), stages, ["b"])

    def test_a_name_goes_before_a_pattern_and_a_pattern_before_the_kind(self):
        stages = [stage("a", default_of="script"), stage("b", tests=("cli.*",)), stage("c", tests=("cli.One",))]
        self.check(made("cli.One"), stages, ["c"])
        self.check(made("cli.Two"), stages, ["b"])
        self.check(made("npu.One"), stages, ["a"])

    def test_one_that_two_stages_name_is_seen(self):
        self.check(made("cli.One"), [stage("a", tests=("cli.One",)), stage("b", tests=("cli.One",))], ["a", "b"])


class Shares(unittest.TestCase):
    def test_are_of_like_cost_and_hold_each_test_once(self):
        tests = [made(f"t{number}") for number in range(9)]
        known = {"t0": 30.0, "t1": 10.0, "t2": 10.0, "t3": 10.0}
        shares = table.in_shares(stage("a", shares=2, always=("t8",)), tests, {**known, "t8": 5.0})
        names = [[test.name for test in share] for share in shares]
        self.assertEqual(sorted(sum(names, [])), sorted([test.name for test in tests] + ["t8"]))
        self.assertTrue(all("t8" in share for share in names), names)
        self.assertFalse(any({"t0", other} <= set(share) for other in known for share in names if other != "t0"), names)

    def test_is_that_of_a_number_or_of_the_commit_or_all(self):
        three = stage("a", shares=3)
        self.assertEqual([run_tests.share_of(three, wanted) for wanted in ("1", "3", "4", "all")], [1, 3, 1, None])
        with mock.patch.object(table, "commit_number", return_value=7):
            self.assertEqual(run_tests.share_of(three, ""), 2)
        self.assertIsNone(run_tests.share_of(stage("a"), ""))


class Runs(unittest.TestCase):
    """The tests of a stage are run, over a build folder of made-up tests."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="acltape_stages_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_stage(self, **tests):
        """Exit code and output of a stage with these tests: a line of the shell for each name."""
        with open(os.path.join(self.folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            for name, line in tests.items():
                name = name.replace("__", ".")
                file.write(f"add_test({name} sh -c [==[cd {self.folder}; {line}]==])\n"
                           f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 "
                           f"TIMEOUT {2 if 'sleep' in line else 100})\n")
        code = ("import sys, table, run_tests\n"
                "table.read = lambda: {'s': table.Stage('s', '', 1, default_of='compiled')}\n"
                "table.costs = lambda: {}\n"
                f"sys.exit(run_tests.main(['s', '--build', {self.folder!r}]))")
        done = subprocess.run([sys.executable, "-Bc", code], cwd=STAGES, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_each_has_its_times_and_skipped_ones_are_named(self):
        code, output = self.run_stage(a="true", b="echo no browser; exit 77")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^ +skipped, .*: b$")
        times = run_tests.read_times(os.path.join(self.folder, "stages", "s", "times.tsv"))
        self.assertEqual({name: code for name, (_, _, code) in times.items()}, {"a": 0, "b": 77})

    def test_one_that_fails_or_is_killed_fails_the_stage_with_its_evidence(self):
        code, output = self.run_stage(A="true", B="echo 'FAIL: what was seen'; false", C="kill -SEGV $$")
        self.assertNotEqual(code, 0)
        self.assertRegex(output, r"(?s)evidence of what failed.*FAIL: what was seen")
        self.assertRegex(output, r"B \(Failed\)")
        self.assertRegex(output, r"C \(SEGFAULT\)")
        times = run_tests.read_times(os.path.join(self.folder, "stages", "s", "times.tsv"))
        self.assertEqual({name: code for name, (_, _, code) in times.items()}, {"A": 0, "B": 1, "C": -11})

    def test_one_that_takes_too_long_is_among_the_slowest(self):
        code, output = self.run_stage(A="true", B="exec sleep 100")
        self.assertNotEqual(code, 0)
        self.assertRegex(output, r"B \(Timeout\)")
        self.assertRegex(output, r"slowest, with theirs:\n.*\n? +\d+\.\d s +0\.0 s  B\n")

    def test_one_that_passes_alone_is_named_as_unsteady(self):
        code, output = self.run_stage(cli__One="test -e seen || { touch seen; false; }", cli__Two="true")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"UNSTEADY, .*: cli\.One\n")

    def test_a_test_program_that_fails_gets_no_second_try(self):
        code, output = self.run_stage(One="test -e seen || { touch seen; false; }")
        self.assertNotEqual(code, 0, output)

    def test_processor_time_of_the_children_counts(self):
        self.run_stage(a="sh -c 'i=0; while test $i -lt 100000; do i=$((i+1)); done'")
        _, processor, _ = run_tests.read_times(os.path.join(self.folder, "stages", "s", "times.tsv"))["a"]
        self.assertGreater(processor, 0.02)


class Report(unittest.TestCase):
    ROW = {"stage": "a", "code": 0, "seconds": 40.0, "built": 20, "processor": 30.0, "budget": 30, "load": 0.5}

    def report(self, *rows, run="", share="", compiled=0, hits=0):
        stages = {row.name: row for row in (stage("a", shares=2), stage("b"))}
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            with contextlib.redirect_stdout(out), mock.patch.object(drive, "STATE", "/nowhere"):
                code = drive.report(run, stages, rows, compiled, hits, share)
            out.seek(0)
            return code, out.read()

    def test_what_was_left_out_is_named_with_the_command(self):
        code, said = self.report(self.ROW)
        self.assertEqual(code, 0)
        self.assertIn("1 of 2 shares of a: scripts/test --stage a --share all", said)
        self.assertIn("scripts/test --stage b", said)
        self.assertNotIn("--share all", self.report(self.ROW, share="all")[1])

    def test_a_stage_over_its_budget_is_a_warning_and_builds_do_not_count(self):
        self.assertNotIn("WARNING", self.report(self.ROW)[1])
        self.assertRegex(self.report({**self.ROW, "built": 9})[1], "WARNING: a took 31 s .* its budget is 30 s")

    def test_a_run_over_its_limit_is_a_warning_and_the_limit_depends_on_the_cache(self):
        slow = {**self.ROW, "seconds": 600.0, "built": 590}
        self.assertRegex(self.report(slow, run="test", compiled=100, hits=95)[1],
                         "WARNING: the run took 10.0 min; 8 min are the limit with a compiler cache")
        self.assertNotIn("WARNING", self.report(slow, run="test", compiled=100, hits=5)[1])
        # Without a cache nothing asks one.
        self.assertNotIn("WARNING", self.report(slow, run="test")[1])
        self.assertIn("WARNING", self.report({**slow, "built": 10}, run="test")[1])

    def test_a_stage_that_failed_is_named_last_with_its_command(self):
        code, said = self.report({**self.ROW, "code": 8}, share="2")
        self.assertEqual(code, 1)
        self.assertTrue(said.endswith("FAILED: a; again: scripts/test --stage a --share 2\n"), said)


class Table(unittest.TestCase):
    """The table of today, over the tests that the build has."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.stages = table.read()
        cls.tests = table.list_tests(BUILD)

    def test_every_test_belongs_to_one_stage(self):
        self.assertGreater(len(self.tests), 400)
        self.assertEqual(table.doubled(self.tests), [])
        wrong = {test.name: [row.name for row in table.stages_of(test, self.stages)] for test in self.tests
                 if len(table.stages_of(test, self.stages)) != 1}
        self.assertEqual(wrong, {}, "tests that belong to no stage or to several")

    def test_every_name_and_pattern_has_a_test(self):
        for row in self.stages.values():
            for pattern in row.tests + row.always:
                self.assertTrue(any(table.matches(test.name, [pattern]) for test in self.tests),
                                f"stages.toml, {row.name}: no test is named {pattern}")

    def test_every_stage_of_tests_has_some_and_each_is_in_one_of_its_shares(self):
        for row in self.stages.values():
            if not row.has_tests:
                continue
            own = table.tests_of(row, self.stages, self.tests)
            self.assertTrue(own, row.name)
            shares = table.in_shares(row, own, table.costs())
            self.assertEqual({test.name for share in shares for test in share}, {test.name for test in own}, row.name)

    def test_every_stage_can_be_run(self):
        with open(os.path.join(STAGES, "steps.sh"), encoding="utf-8") as file:
            functions = set(re.findall(r"^(\w+)\(\) {", file.read(), re.MULTILINE))
        self.assertEqual({row.name.replace("-", "_") for row in self.stages.values()} - functions, set())
        listed = subprocess.run(["bash", os.path.join(ROOT, "scripts", "test"), "--stage", "list"], check=True,
                                text=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(re.findall(r"^([a-z]\S*) ", listed, re.MULTILINE), list(self.stages))

    def test_what_the_short_run_has_the_longer_ones_have(self):
        runs = [{row.name for row in table.of_run(self.stages, run)} for run in table.RUNS]
        self.assertLess(runs[0], runs[1])
        self.assertLess(runs[1], runs[2])
        self.assertEqual(runs[2], set(self.stages))


if __name__ == "__main__":
    unittest.main()
