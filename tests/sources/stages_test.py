#!/usr/bin/env python3
"""Every test of the build belongs to one stage of scripts/test, and every stage can be run.

ACLTAPE_BUILD_FOLDER names the build folder, whose tests ctest lists.
"""
import os
import re
import subprocess
import sys
import unittest

from source_text import ROOT

STAGES = os.path.join(ROOT, "tests", "stages")
sys.path.insert(0, STAGES)
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
