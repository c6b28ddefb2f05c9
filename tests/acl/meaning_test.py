#!/usr/bin/env python3
"""acl/data/meaning.json says of every wrapped interface function what it means, and the page shows it."""
import copy
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "acl", "generate"))
import meaning  # noqa: E402
import tables  # noqa: E402


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


class Page(unittest.TestCase):
    def test_the_page_is_what_the_generator_writes(self):
        self.assertEqual(read(meaning.PAGE).splitlines(), meaning.page_text(meaning.Meaning()).splitlines(),
                         f"write it again: python3 acl/generate/meaning.py page {meaning.PAGE}")

    def test_rules_of_lint_exist(self):
        known = meaning.Meaning()
        named = {row["capture"] for rows in (known.kinds, known.variants) for row in rows.values()
                 if "capture" in row}
        self.assertEqual(named - set(re.findall(r"^\| (LINT-\d+) ", read("docs/lint_rules.md"), re.M)), set())


class PlantedMistakes(unittest.TestCase):
    """A mistake in the file ends the generator with a sentence that names it."""

    def setUp(self):
        self.data = copy.deepcopy(meaning.read_data())
        self.abi = copy.deepcopy(tables.recorded())
        self.copy_row = next(row for row in self.data["functions"] if row["name"] == "aclrtMemcpyAsync")

    def says(self, sentence):
        with self.assertRaises(SystemExit) as caught:
            meaning.Meaning(self.data, self.abi)
        self.assertEqual(str(caught.exception), f"acl/data/meaning.json: {sentence}")

    def test_a_new_function_of_the_interface_needs_a_meaning(self):
        self.abi.append({"name": "aclrtFoldStream", "params": [], "group": "stream"})
        self.says("aclrtFoldStream has neither a row nor a prefix; say what it means, or that it is unknown")
        self.data["unknown"].append("aclrtFoldStream")
        self.assertIn("aclrtFoldStream", meaning.Meaning(self.data, self.abi).unknown)

    def test_a_parameter_that_does_not_exist(self):
        for column, value in (("stream", "flow"), ("effect", ["copy", "dst", "flow", "count"]),
                              ("arguments", {"dst": ["out", "flow"]}), ("arguments", {"flow": "out_stream"})):
            with self.subTest(column=column, value=value):
                before = self.copy_row[column]
                self.copy_row[column] = value
                self.says("aclrtMemcpyAsync has no parameter flow")
                self.copy_row[column] = before

    def test_a_code_that_does_not_exist(self):
        copy_kind = next(row for row in self.data["kinds"] if row["kind"] == "copy")
        for code in ("ACL_ERROR_RT_STREAM_FOLDED", 107030):
            with self.subTest(code=code):
                copy_kind["code"] = code
                self.says(f"{code} is no code of acl_abi.json")

    def test_a_function_that_does_not_exist(self):
        self.copy_row["name"] = "aclrtMemcpyLater"
        self.says("aclrtMemcpyLater is no function of acl_abi.json")

    def test_a_name_with_two_rows(self):
        self.data["functions"].append(self.copy_row)
        self.says("aclrtMemcpyAsync has two rows")

    def test_a_column_or_a_kind_that_does_not_exist(self):
        self.copy_row["kind"] = "copies"
        self.says("copies is no kind")
        self.copy_row["knd"] = self.copy_row.pop("kind")
        self.says("the table functions has no column knd")


unittest.main()
