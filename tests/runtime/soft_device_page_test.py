#!/usr/bin/env python3
"""Two pages tell the truth. docs/soft_device_rules.md lists every rule once with a test that exists, or the
reason why there is none; docs/soft_device.md lists every interface function that the libraries do not export.

    soft_device_page_test.py SOURCE_DIR LIBRARY...
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import unittest

# The rules' numbers, by section of their specification: inclusive ranges.
RULES = {
    "GEN": [(1, 12)], "INIT": [(1, 11)], "DEV": [(1, 20)], "CTX": [(1, 10)], "STR": [(1, 25)],
    "EVT": [(1, 23)], "NTF": [(1, 7)], "LBL": [(1, 3)], "CB": [(1, 11)], "MEM": [(1, 18)],
    "CPY": [(1, 16)], "ERR": [(1, 11)], "CAP": [(1, 26), (30, 39), (40, 54), (60, 73)],
    "JOIN": [(1, 6)], "TG": [(1, 6)], "UPD": [(1, 9)], "EXT": [(1, 7)], "EXE": [(1, 20)],
    "BLD": [(1, 5)], "ENUM": [(1, 17)], "COND": [(1, 15)], "JSON": [(1, 9)], "LIM": [(1, 4)],
    "CLI": [(1, 11)], "GAP": [(1, 5)], "SDK": [(1, 4)], "PROF": [(1, 3)], "RED": [(1, 3)],
    "RND": [(1, 9)], "OVF": [(1, 3)], "PRD": [(1, 3)], "TDT": [(1, 7)], "QUE": [(1, 7)],
    "DMP": [(1, 8)], "PLT": [(1, 2)], "IPC": [(1, 7)], "CMO": [(1, 1)], "OPI": [(1, 11)],
    "HCL": [(1, 11)], "KRN": [(1, 5)], "FMT": [(1, 5)], "POOL": [(1, 12)], "FND": [(1, 4)],
}
ALL_RULES = [f"{section}-{number:02}" for section, ranges in RULES.items()
             for first, last in ranges for number in range(first, last + 1)]
LEAST_TESTED = 230

SOURCE = pathlib.Path(sys.argv[1])
LIBRARIES = sys.argv[2:]
PAGE = SOURCE / "docs" / "soft_device.md"
RULES_PAGE = SOURCE / "docs" / "soft_device_rules.md"
ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.*?) \| (.*) \|$")


def rows():
    """(rule, what, test or reason) of the tables of rules, in order."""
    return [match.groups() for match in map(ROW.match, RULES_PAGE.read_text().splitlines()) if match]


def tests():
    """Suite.Name of every C++ test below tests/, and folder.name of every file of tests in Python."""
    pattern = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
    found = {f"{suite}.{name}" for file in (SOURCE / "tests").rglob("*.cpp")
             for suite, name in pattern.findall(file.read_text())}
    # Tests of texts, in Python, as acl.headers_alone.
    return found | {f"{file.parent.name}.{file.name.removesuffix('_test.py')}"
                    for file in (SOURCE / "tests").rglob("*_test.py")}


def interface():
    return json.loads((SOURCE / "acl" / "data" / "acl_abi.json").read_text())["functions"]


def exported_names():
    names = set()
    for library in LIBRARIES:
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                                 capture_output=True, text=True).stdout
        names |= {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    return names


def cited(cell):
    return re.findall(r"`([^`]+)`", cell)


class Page(unittest.TestCase):
    maxDiff = None

    def test_every_rule_has_exactly_one_row(self):
        self.assertEqual(len(ALL_RULES), 451)
        listed = [rule for rule, _, _ in rows()]
        repeated = [rule for rule, count in collections.Counter(listed).items() if count > 1]
        self.assertEqual(repeated, [], "rules with several rows")
        self.assertEqual(sorted(set(ALL_RULES) - set(listed)), [], "rules without a row")
        self.assertEqual(sorted(set(listed) - set(ALL_RULES)), [], "rows of no rule")

    def test_every_named_test_exists(self):
        known = tests()
        missing = [f"{rule}: {name}" for rule, _, cell in rows() if not cell.startswith("no test")
                   for name in cited(cell) if name not in known]
        self.assertEqual(missing, [])

    def test_every_row_has_a_phrase_and_a_test_or_a_reason(self):
        for rule, what, cell in rows():
            self.assertTrue(what.strip(), rule)
            if cell.startswith("no test"):
                self.assertRegex(cell, r"^no test( yet)?: .{10,}", f"{rule}: say why")
            else:
                self.assertTrue(cited(cell), f"{rule}: neither `Suite.Name` nor a reason")

    def test_enough_rules_have_tests(self):
        tested = [rule for rule, _, cell in rows() if not cell.startswith("no test")]
        print(f"{len(tested)} of {len(ALL_RULES)} rules have tests")
        self.assertGreaterEqual(len(tested), LEAST_TESTED)

    def test_tests_name_only_rules_that_exist(self):
        # STR_05_STR_06_StreamExhaustion... names the rules STR-05 and STR-06.
        sections = "|".join(RULES)
        wrong = []
        for test in sorted(tests()):
            name = test.split(".")[1]
            while match := re.match(rf"({sections})_(\d\d)_", name):
                rule = f"{match[1]}-{match[2]}"
                if rule not in ALL_RULES:
                    wrong.append(f"{test} names {rule}")
                name = name[match.end():]
        self.assertEqual(wrong, [])

    def test_exported_functions_are_in_the_interface(self):
        # The tests of misuse take their rows from there (tests/runtime/misuse).
        unknown = {name for name in exported_names() if name.startswith("acl")}
        self.assertEqual(sorted(unknown - {function["name"] for function in interface()}), [])

    def test_functions_said_to_be_missing_are_missing_and_no_others(self):
        exported = exported_names()
        missing = collections.defaultdict(set)
        for function in interface():
            if function["name"] not in exported:
                missing[function["group"]].add(function["name"])
        section = PAGE.read_text().split("\n## What it does not offer\n", 1)[1].split("\n## ", 1)[0]
        listed = {match[1]: set(cited(match[2]))
                  for match in re.finditer(r"^\| (\w+) \| (`.*`) \|$", section, re.MULTILINE)}
        for group in sorted(missing.keys() | listed.keys()):
            row = ", ".join(f"`{name}`" for name in sorted(missing[group]))
            self.assertEqual(listed.get(group, set()), missing[group],
                             f"the row should be: | {group} | {row} |")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
